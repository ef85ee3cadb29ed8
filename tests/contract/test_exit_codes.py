"""docs/exit-codes.md says what the programs do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_digup import errors
from hermes_digup.errors import DigupError, EmbeddingError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "exit-codes.md").read_text("utf-8")
SECTIONS = {part.split("\n")[0].strip("` ").split("`")[0]: part for part in PAGE.split("\n## ")[1:]}


def rows(section: str) -> dict[str, tuple[str, str]]:
    """Each table row of a section: its first cell, then what it means and where it comes from."""
    cells = re.findall(r"^\| `?([\w, ]+?)`? \| (.+?) \|(?: `?(\w*)`? \|)?$", SECTIONS[section], re.MULTILINE)
    return {first: (means, source) for first, means, source in cells}


def faults(kind: type[DigupError] = DigupError) -> Iterator[type[DigupError]]:
    yield kind
    for sub in kind.__subclasses__():
        yield from faults(sub)


FAULTS = sorted(
    {each for each in faults() if each.__module__ == errors.__name__}, key=lambda each: each.__name__
)


def test_there_are_faults_to_walk() -> None:
    assert len(FAULTS) >= 12


@pytest.mark.parametrize("fault", FAULTS, ids=lambda each: each.__name__)
def test_every_fault_ends_with_the_code_that_is_written(fault: type[DigupError]) -> None:
    shown = rows("hermes-digup")

    if issubclass(fault, EmbeddingError):
        assert shown[fault.code][1] == fault.__name__
        assert fault.exit_code == EmbeddingError.exit_code
    else:
        assert shown[str(fault.exit_code)][1] == fault.__name__


def test_nothing_is_written_of_a_fault_that_there_is_not() -> None:
    named = {source for _, source in rows("hermes-digup").values() if source}

    assert named == {each.__name__ for each in FAULTS}


def test_the_laptops_script_says_the_same_as_the_page() -> None:
    script = (ROOT / "templates" / "laptop" / "digup-sync.sh").read_text("utf-8")
    told = re.search(r"^# Exit codes\n((?:#.+\n)+)", script, re.MULTILINE)
    assert told
    codes = re.findall(r"^#\s+(\d+(?:, \d+)*) ", told[1], re.MULTILINE)

    assert codes == [code for code in rows("digup-sync.sh") if code != "code"]


def test_the_pis_door_says_the_same_as_the_page() -> None:
    door = (ROOT / "templates" / "pi" / "receive").read_text("utf-8")
    used = set(re.findall(r"\b(?:say|exit) (\d+)\b", door))

    assert {"64", "69"} <= used <= set(rows("receive"))

"""docs/troubleshooting.md knows every sentence, check, state and exit code, all taken from the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from docs import messages

from hermes_digup.errors import EmbeddingError
from hermes_digup.publishing.outcome import SourceStatus, State
from hermes_digup.service.answers import Status, WarningCode

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
SCRIPT = (ROOT / "templates" / "laptop" / "digup-sync.sh").read_text("utf-8")
SPEAKING = (
    "server/hermes_digup/**/*.py", "roles/*/library/*.py", "roles/*/module_utils/*.py",
    "roles/*/tasks/*.yml", "playbooks/**/*.yml", "templates/laptop/*.sh", "templates/pi/receive",
)  # fmt: skip
STATES = sorted({*get_args(State), *get_args(get_type_hints(SourceStatus)["state"])})
# Ranking raises nothing; what stands there are words of languages and programs.
SILENT = "server/hermes_digup/ranking/"


def causes(kind: type[EmbeddingError] = EmbeddingError) -> Iterator[str]:
    yield kind.code
    for sub in kind.__subclasses__():
        yield from causes(sub)


def test_its_lists_are_what_the_code_says() -> None:
    assert messages.filled(PAGE) == PAGE, "run: make docs"


def test_every_file_that_says_something_is_in_a_list() -> None:
    listed = {path for paths in messages.listed(PAGE).values() for path in paths}
    speaking = {path for each in SPEAKING for path in ROOT.glob(each) if messages.said_by(path)}

    assert len(speaking) > 50
    assert [
        name
        for path in sorted(speaking - listed)
        if not (name := str(path.relative_to(ROOT))).startswith(SILENT)
    ] == []


@pytest.mark.parametrize(
    "path",
    [
        str(path.relative_to(ROOT))
        for path in sorted(
            [*ROOT.glob("server/hermes_digup/doctor/*.py"), *ROOT.glob("roles/*/tasks/verify.yml")]
        )
        if "Row(" in path.read_text("utf-8") or path.suffix == ".yml"
    ],
)
def test_every_check_of_the_doctor_is_named(path: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    names = set(re.findall(r"^ *(?:- )?check: (.+)$", text, re.MULTILINE))
    names |= set(re.findall(r'\b(?:Row\(\s*|name = |name, since = \(\s*)f?"([^"]+)"', text))
    last = PAGE.split("## Every check of the doctor")[1]

    assert names
    for name in names:
        for part in re.split(r"\{+[^}]*\}+", name):
            assert part.strip(" ,()") in last, name


@pytest.mark.parametrize("word", [*STATES, *get_args(Status), *get_args(WarningCode), *causes(), "not_set"])
def test_every_state_status_warning_and_cause_is_named(word: str) -> None:
    assert f"`{word}`" in PAGE


def test_every_state_and_exit_code_of_a_sync_is_named() -> None:
    states = set(re.findall(r"STATE=([a-z_]+)", SCRIPT)) - {"null"}
    told = re.search(r"^# Exit codes\n((?:#.+\n)+)", SCRIPT, re.MULTILINE)
    assert told
    codes = re.findall(r"^#\s+(\d+(?:, \d+)*) ", told[1], re.MULTILINE)
    rows = {cell for row in re.findall(r"^\| (`.+?`) \| ([\d, ]+) \|", PAGE, re.MULTILINE) for cell in row}

    assert states <= {state for cell in rows for state in re.findall(r"`(\w+)`", cell)}
    assert set(codes) <= rows


def test_every_exit_code_of_the_pis_door_is_named() -> None:
    door = (ROOT / "templates" / "pi" / "receive").read_text("utf-8")
    section = PAGE.split("What the Pi's side says")[1].split("<!--")[0]

    for code in set(re.findall(r"\b(?:say|exit) (\d+)\b", door)):
        assert f" {code}:" in f" {section.replace('code ', '')}", code


def test_a_sentence_in_the_code_that_the_page_lacks_is_found(tmp_path: Path) -> None:
    module = tmp_path / "new.py"
    module.write_text('def f(name):\n    raise DigupError(f"{name} has gone astray", fix="Call it.")\n')
    script = tmp_path / "new.sh"
    script.write_text('fail 3 "the $name has gone astray; call it"\n')

    assert [each.line() for each in messages.said_by(module)] == ["- `… has gone astray` Call it"]
    assert [each.line() for each in messages.said_by(script)] == ["- `the … has gone astray; call it`"]

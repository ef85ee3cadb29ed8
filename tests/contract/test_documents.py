"""What the documents point at is there: files, headings, make targets, playbooks, commands, options."""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from hermes_digup.cli.parser import build_parser

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("roles/*/README.md")],
    key=lambda path: path.as_posix(),
)
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
# At the start of a line or of a code span: elsewhere it is the subject of a sentence.
_COMMAND = re.compile(r"(?:^|`|\$ )hermes-digup ([a-z]+)\b([^`\n|;#]*)", re.MULTILINE)
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


def heading_ids(path: Path) -> set[str]:
    """The anchors that a web page of this document has."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_every_link_leads_somewhere(document: Path) -> None:
    text = _CODE.sub("", document.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", text)
    broken = []
    for target in ("".join(pair) for pair in targets):
        if re.match(r"https?:|mailto:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (document.parent / file).resolve() if file else document
        if not path.exists() or (anchor and anchor not in heading_ids(path)):
            broken.append(target)
    assert broken == []


def code(document: Path) -> str:
    """What stands in code; the sentences of troubleshooting are code, too, but none to be typed."""
    if document.name == "troubleshooting.md":
        return ""
    return "\n".join(_CODE.findall(document.read_text(encoding="utf-8")))


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_every_make_target_and_playbook_is_there(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = code(document)
    assert set(re.findall(r"(?:^|[`$&] ?)make ([a-z][a-z-]*)", text, re.MULTILINE)) <= targets
    playbooks = set(re.findall(r"ansible-playbook ((?:[\w/]+/)?\w+\.yml)", text))
    assert {name for name in playbooks if not (ROOT / name).exists()} == set()


def subcommands() -> dict[str, argparse.ArgumentParser]:
    (choices,) = (
        action.choices for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return dict(choices)


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_every_command_of_the_program_is_known_with_its_options(document: Path) -> None:
    parsers = subcommands()
    unknown = []
    for command, rest in _COMMAND.findall(code(document)):
        if command not in parsers:
            unknown.append(command)
            continue
        known = parsers[command].format_help()
        unknown += [
            f"{command} {option}"
            for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)
            if option not in known
        ]
    assert unknown == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_every_block_is_commands_or_settings_and_none_is_output(document: Path) -> None:
    """What our programs print is shown by pictures of real runs (docs/pictures.py): a text would age."""
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert {language for language, _ in blocks} <= {"sh", "yaml"}
    assert text.count("```") == 2 * len(blocks)
    for language, block in blocks:
        if language == "yaml":
            yaml.safe_load(block)
        else:
            read = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
            assert (read.returncode, read.stderr) == (0, "")
    if document.parent.name == "docs" or document.parent == ROOT:
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert re.findall(r"\n\n    \S.*", prose) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_every_variable_of_ansible_is_known(document: Path) -> None:
    ours = [*ROOT.glob("roles/*/*/*.yml"), *ROOT.glob("playbooks/**/*.yml")]
    names = r"\b(?:preflight|omlx_server|hermes_digup|digup_sync|site|doctor|uninstall)_\w+"
    known = {name for path in ours for name in re.findall(names, path.read_text(encoding="utf-8"))}
    assert set(re.findall(names, code(document))) <= known

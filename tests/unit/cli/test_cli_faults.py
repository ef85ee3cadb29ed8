"""What goes wrong at the command line: one sentence on standard error, a code that means something."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.doubles.delivery import HOME

from hermes_digup.cli import main
from hermes_digup.cli.words import COMMAND_OF, for_people, from_home
from hermes_digup.mcp_server import DEFINITIONS
from hermes_digup.service import Answer, Notice

RAW = [sys.executable, "-m", "hermes_digup"]
COMMAND = shlex.join(RAW)


@pytest.fixture(autouse=True)
def _at_home(pi: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(pi))


@pytest.mark.parametrize(
    ("command", "exit_code", "sentence"),
    [
        (
            ["search", ""],
            2,
            "query is empty. Say in a few words what to look for, or list files with hermes-",
        ),
        (
            ["search", "x", "--folder", "../.."],
            2,
            "folder: '../..' leads out of the home folder. Give a full",
        ),
        (
            ["browse", "--folder", "../.."],
            2,
            "folder: '../..' leads out of the home folder. Give a full path",
        ),
        (["read", "/nowhere"], 1, "No indexed file has this path. Use a path from a search or from hermes-"),
        (["read", "~/Documents/Flat"], 1, "This is a folder with 4 indexed files: hermes-digup browse"),
        (
            ["read", "macbook:15"],
            2,
            "'macbook:15' is no id of a hit: one looks like macbook:1432:7f3a9c01de.",
        ),
        (["read", "macbook:15:zzzz"], 2, "'macbook:15:zzzz' is no id of a hit"),
        (["read", "macbook:15:0123456789"], 1, "The index has moved on since this id was made"),
        (
            ["read", "nas:15:0123456789"],
            1,
            "There is no source nas here now (there is: macbook). Search again.",
        ),
        (["read", "0"], 1, "No passage has the number 0. Search again and use an id from there."),
        (["read", "-7"], 1, "No passage has the number -7. "),
        (["read", "0015"], 1, "No passage has the number 0015. "),
        (["read", "9223372036854775807"], 1, "No passage has the number 9223372036854775807. "),
        (["read", "9" * 5000], 1, f"No passage has the number {'9' * 39}…. "),
        (["read", "15", "--machine", "nas"], 2, "machine: there is no 'nas'. Valid: macbook."),
        (["read", "15", "--offset", "3"], 2, "--offset does not go with a number, which names one passage"),
        (["read", "m:1:0123456789", "--code"], 2, "--code does not go with an id, which names one passage"),
        (["read", "/x", "--context", "1"], 2, "--context does not go with a path; a file takes --offset and"),
        (
            ["read", "lease agreement harbour street 14.pdf", "--offset", "99999"],
            1,
            "offset 99999 is past the",
        ),
        (
            ["serve", "--port", "9"],
            2,
            "--host, --port, --name and --anywhere go with --http; add it or leave",
        ),
        (["publish", "--source", "nas"], 3, "There is no source 'nas' in "),
    ],
    ids=lambda given: " ".join(given)[:40] if isinstance(given, list) else None,
)
def test_a_fault_is_one_sentence_on_standard_error(
    capsys, command: list[str], exit_code: int, sentence: str
) -> None:
    assert main(command) == exit_code

    shown = capsys.readouterr()
    assert shown.err.startswith(f"hermes-digup: {sentence}")
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_scripts_find_a_faults_sentence_in_the_json(capsys) -> None:
    assert main(["read", "/nowhere", "--json"]) == 1

    shown = capsys.readouterr()
    assert json.loads(shown.out)["message"].endswith("Use a path from a search or from hermes-digup browse.")
    assert shown.err == ""


@pytest.mark.parametrize("command", [["search", "x"], ["status"], ["publish"]], ids=" ".join)
def test_a_folder_of_sources_that_is_not_there_is_named(capsys, monkeypatch, command: list[str]) -> None:
    monkeypatch.setenv("DIGUP_SOURCES_DIR", "/nowhere/sources")

    assert main(command) == 3

    assert (
        "There is no folder /nowhere/sources (DIGUP_SOURCES_DIR), so no index has" in capsys.readouterr().err
    )


@pytest.mark.parametrize("command", [["search", "-x"], ["search", "invoice", "-x"], ["read", "-x"]])
def test_a_dash_that_was_taken_for_an_option_gets_a_hint(capsys, command: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command)

    assert ended.value.code == 2
    assert "What begins with a dash and is no option goes after --" in capsys.readouterr().err
    assert main([command[0], "--", "-x"]) in (0, 1)


def test_a_number_is_read_from_the_index_that_is_asked_for(capsys) -> None:
    main(["read", "15"])
    of_documents = capsys.readouterr().out
    main(["read", "14", "--code", "--machine", "macbook"])
    of_code = capsys.readouterr().out

    assert of_documents.startswith(f"{HOME}/Documents/")
    assert (
        "note: The same number is also in: macbook, code index. This is macbook, main index." in of_documents
    )
    assert of_code.startswith(f"{HOME}/Code/")


def test_the_shells_own_home_is_the_laptops(pi: Path, capsys) -> None:
    assert main(["browse", "--folder", f"{pi}/Documents/Flat"]) == 0
    assert main(["search", "rent", "--folder", str(pi)]) == 0
    assert main(["read", f"{pi}/Documents/Flat/Hausordnung.pdf"]) == 0

    assert "Nothing" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "home", "meant"),
    [
        ("/home/pi", "/home/pi", "~"),
        ("/home/pi/a", "/home/pi/", "~/a"),
        ("/home/pieter/a", "/home/pi", "/home/pieter/a"),
        ("/a", "", "/a"),
        ("/a", "/", "/a"),
    ],
)
def test_only_paths_in_this_hosts_home_are_taken_for_the_laptops(path: str, home: str, meant: str) -> None:
    assert from_home(path, home) == meant


def test_every_tool_has_its_command() -> None:
    assert set(COMMAND_OF) == {each.name for each in DEFINITIONS}


def test_sentences_for_people_name_commands_and_leave_paths_alone() -> None:
    told = "Use read_file. See /a/read_file.py, read_file.md, /b/read_file on macbook; or browse_files."
    answer = Answer(status="ok", message=told, warnings=[Notice(code="cut", message="(read_passage)")])

    spoken = for_people(answer)

    assert spoken.message == (
        "Use hermes-digup read PATH. See /a/read_file.py, read_file.md, /b/read_file on macbook; or "
        "hermes-digup browse."
    )
    assert spoken.warnings[0].message == "(hermes-digup read ID)"


def test_a_full_disk_behind_the_output_is_said_in_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*RAW, "status"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.returncode, done.stderr) == (1, "hermes-digup: No space left on device.\n")


def test_a_reader_that_leaves_early_hears_nothing_of_it() -> None:
    line = f"{COMMAND} search invoice --limit 50 | head -1; exit ${{PIPESTATUS[0]}}"

    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1. /Users/ana")


def test_output_that_is_closed_or_lacks_signs_is_no_fault() -> None:
    line = f"{COMMAND} search invoice --limit 1"

    closed = subprocess.run(["bash", "-c", f"{line} >&-"], capture_output=True, text=True, check=False)
    ascii_only = subprocess.run(
        ["bash", "-c", f"PYTHONIOENCODING=ascii {line}"], capture_output=True, text=True, check=False
    )

    assert (closed.returncode, closed.stderr) == (0, "")
    assert (ascii_only.returncode, ascii_only.stderr) == (0, "")
    assert r"\xabInvoice" in ascii_only.stdout

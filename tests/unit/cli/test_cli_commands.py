"""The command line over a delivered index: for people, for pipes, for scripts as JSON."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.doubles.delivery import deliver

from hermes_digup.cli import main

NOTHING_INDEXED = 3


@pytest.fixture(autouse=True)
def _at_home(pi: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(pi))
    monkeypatch.delenv("COLUMNS", raising=False)


def test_a_search_shows_where_to_look_and_a_line_to_paste(capsys) -> None:
    assert main(["search", "INV-2026-0042", "--limit", "1"]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith("1. /Users/ana/Documents/Invoices/2026/Invoice Brightwater Design.pdf  page 1\n")
    assert (
        "open -R '/Users/ana/Documents/Invoices/2026/Invoice Brightwater Design.pdf'   # on macbook" in shown
    )
    assert "note: No model server is set" in shown
    assert "\x1b" not in shown


def test_in_a_pipe_no_line_is_folded(capsys) -> None:
    main(["search", "invoice"])
    main(["status"])
    main(["doctor"])

    shown = capsys.readouterr().out
    assert (
        "note: No model server is set (DIGUP_EMBED_URL), so only words were compared, not meaning.\n" in shown
    )
    assert re.search(
        r"^Files of macbook are searched by words alone, as no model server is set.$", shown, re.M
    )
    assert re.search(r"^ok +settings +defaults \(no /.*config.env\)$", shown, re.M)


def on_a_terminal(columns: int, *command: str) -> list[str]:
    """The lines of a command as a terminal of that width shows them, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    started = subprocess.Popen(
        [sys.executable, "-m", "hermes_digup", *command],
        stdout=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody writes any more
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    assert started.wait(timeout=60) == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()


def test_on_a_terminal_only_what_people_paste_is_wider_than_it() -> None:
    for command in (("search", "invoice"), ("status",)):
        lines = on_a_terminal(50, *command)

        assert any(len(line) > 35 for line in lines)
        assert [
            line for line in lines if len(line) > 50 and not re.search(r" /Users|open -R|^ +id ", line)
        ] == []


@pytest.mark.parametrize(
    "command",
    [
        ["search", "invoice"],
        ["browse"],
        ["status"],
        ["status", "--source", "macbook"],
        ["doctor"],
        ["publish"],
    ],
    ids=" ".join,
)
def test_no_line_ends_in_blanks_or_is_cut(capsys, command: list[str]) -> None:
    main(command)

    shown = capsys.readouterr().out
    assert shown
    assert [line for line in shown.splitlines() if line != line.rstrip()] == []
    assert "…" not in shown


def test_a_retired_source_leaves_until_it_is_published_again(
    tmp_path, databases, monkeypatch, capsys
) -> None:
    assert deliver(tmp_path, "macbook", databases, confirmed=datetime.now(timezone.utc)).state == "published"
    monkeypatch.setenv("HOME", str(tmp_path))

    assert main(["publish", "--source", "macbook", "--retire"]) == 0
    assert capsys.readouterr().out == "macbook: retired: its laptop was taken out of the setup\n"
    assert main(["search", "invoice"]) == NOTHING_INDEXED
    assert main(["publish", "--source", "macbook", "--force"]) == 0
    assert main(["search", "invoice"]) == 0


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        (["publish", "--retire"], 2),
        (["publish", "--retire", "--source", "nobody"], NOTHING_INDEXED),
    ],
)
def test_what_cannot_be_retired_is_said(capsys, command: list[str], exit_code: int) -> None:
    assert main(command) == exit_code

    assert "source" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["search", "invoice", "--json"],
        ["search", "--code", "retry", "--json"],
        ["browse", "--json"],
        ["status", "--json"],
        ["status", "--source", "macbook", "--json"],
        ["publish", "--json"],
        ["doctor", "--json"],
    ],
)
def test_scripts_get_one_json_document(capsys, command: list[str]) -> None:
    assert main(command) == 0

    assert isinstance(json.loads(capsys.readouterr().out), dict)


def test_a_hit_is_read_by_its_id_its_number_and_its_path(capsys) -> None:
    main(["search", "INV-2026-0042", "--json"])
    hit = json.loads(capsys.readouterr().out)["hits"][0]

    for what in (
        hit["segment_id"],
        hit["segment_id"].split(":")[1],
        hit["path"],
        hit["path"].rsplit("/", 1)[1],
    ):
        assert main(["read", what]) == 0
        assert "INV-2026-0042" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        (["read", "/nowhere"], 1),
        (["read", "macbook:1:0123456789"], 1),
        (["read", "999999999999999999999"], 1),
        (["search", "qqzzxx"], 0),
        (["browse", "--folder", "/nowhere"], 0),
        (["publish", "--source", "nobody"], 3),
        (["search", "x", "--folder", "\udcff"], 0),
    ],
)
def test_what_is_not_there_is_said_without_a_traceback(capsys, command: list[str], exit_code: int) -> None:
    assert main(command) == exit_code

    shown = capsys.readouterr()
    assert shown.out or shown.err
    assert "Traceback" not in shown.out + shown.err


def test_doctor_ends_in_a_verdict(capsys) -> None:
    assert main(["doctor"]) == 0

    shown = capsys.readouterr().out
    assert "index of macbook" in shown
    assert shown.rstrip().endswith("checks warned, none failed")

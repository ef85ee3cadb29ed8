"""The command line over a delivered index: for people in 80 columns, for scripts as JSON."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.doubles.delivery import build_index, deliver

from hermes_digup.cli import main

WIDTH = 80


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A Pi with one source."""
    home = tmp_path_factory.mktemp("pi")
    databases = build_index(tmp_path_factory.mktemp("digup"))
    assert deliver(home, "macbook", databases, confirmed=datetime.now(timezone.utc)).state == "published"
    return home


@pytest.fixture(autouse=True)
def _at_home(home: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("COLUMNS", raising=False)
    for key in ("DIGUP_CONFIG", "DIGUP_EMBED_URL", "DIGUP_SOURCES_DIR", "DIGUP_INDEX_DIR"):
        monkeypatch.delenv(key, raising=False)


def test_a_search_shows_where_to_look_and_a_line_to_paste(capsys) -> None:
    assert main(["search", "INV-2026-0042", "--limit", "1"]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith("1. /Users/ana/Documents/Invoices/2026/Invoice Brightwater Design.pdf  page 1\n")
    assert (
        "open -R '/Users/ana/Documents/Invoices/2026/Invoice Brightwater Design.pdf'   # on macbook" in shown
    )
    assert "note: No embedding server is set" in shown
    assert "\x1b" not in shown


def test_lines_that_nobody_pastes_fit_into_eighty_columns(capsys) -> None:
    main(["search", "invoice"])
    main(["status"])

    lines = capsys.readouterr().out.splitlines()
    assert [
        line for line in lines if len(line) > WIDTH and " /Users" not in line and "open -R" not in line
    ] == []


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

"""The command line over a delivered index: for people in 80 columns, for scripts as JSON."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.doubles.delivery import deliver

from hermes_digup.cli import main

WIDTH = 80
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


def test_doctor_folds_a_long_path_and_shows_all_of_it(tmp_path, monkeypatch, capsys) -> None:
    config = tmp_path / ("a-folder-with-a-long-name-" * 4) / "config.env"
    config.parent.mkdir()
    config.write_text("")
    monkeypatch.setenv("DIGUP_CONFIG", str(config))

    main(["doctor"])

    lines = capsys.readouterr().out.splitlines()
    assert str(config) in "".join(line[29:] for line in lines)
    assert [line for line in lines if len(line) > WIDTH] == []


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

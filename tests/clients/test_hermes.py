"""Hermes Agent itself, as published: its commands, its client and its rules for skills, without a model."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.clients.serving import NAMES, Pi, lines_of, run

HERE = Path(__file__).parent
SKILL = HERE.parents[1] / "templates" / "pi" / "SKILL.md"


@pytest.fixture(scope="module")
def home(pi: Pi, hermes: Path, tmp_path_factory) -> Path:
    """A Hermes home that has our server as the role writes it."""
    home = tmp_path_factory.mktemp("hermes")
    entry = {
        "command": pi.command,
        "args": ["serve"],
        "enabled": True,
        "timeout": 60,
        "connect_timeout": 60,
        "keepalive_interval": 30,
        "tools": {"resources": False, "prompts": False},
        "env": {"HOME": str(pi.home)},
    }
    # JSON is YAML.
    (home / "config.yaml").write_text(json.dumps({"mcp_servers": {"digup": entry}}))
    return home


@pytest.fixture(scope="module")
def environ(home: Path, pi: Pi) -> dict[str, str]:
    return {**pi.environ, "HOME": str(home), "HERMES_HOME": str(home), "NO_COLOR": "1", "COLUMNS": "200"}


@pytest.fixture(scope="module")
def called(hermes: Path, environ: dict[str, str]) -> dict[str, Any]:
    """What Hermes's client registered, and what it handed on from each tool."""
    done = run(hermes / "python", HERE / "hermes_calls.py", environ=environ)
    assert done.returncode == 0, lines_of(done)
    return json.loads(done.stdout.splitlines()[-1])


def test_hermes_is_the_version_that_is_meant(hermes, environ) -> None:
    assert "0.19.0" in run(hermes / "hermes", "--version", environ=environ).stdout


def test_hermes_mcp_test_lists_the_six_tools(hermes, environ) -> None:
    # It exits with 0 whatever happens: what it says is what counts.
    done = run(hermes / "hermes", "mcp", "test", "digup", environ=environ)

    assert "Connected (" in done.stdout, lines_of(done)
    assert "Tools discovered: 6" in done.stdout
    assert [name for name in NAMES if not re.search(rf"^ +{name}\b", done.stdout, re.MULTILINE)] == []


def test_hermes_registers_our_tools_and_none_besides(called) -> None:
    assert sorted(called["names"]) == sorted(f"mcp__digup__{name}" for name in NAMES)


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("search_files", "Invoice Brightwater Design.pdf"),
        ("search_code", "/Code/tidewatch/tidewatch/retry.py"),
        ("read_passage", "INV-2026-0042"),
        ("read_file", "INV-2026-0042"),
        ("browse_files", "newest first"),
        ("index_status", "macbook: synced"),
    ],
)
def test_each_tool_answers_through_hermess_client(called, tool: str, told: str) -> None:
    answer = called["answers"][tool]

    assert "error" not in answer
    assert told in answer["result"]


def test_misses_in_a_row_do_not_trip_hermess_breaker(called) -> None:
    assert len(called["misses"]) == 60
    assert [answer for answer in called["misses"] if "error" in answer] == []
    assert "Invoice Brightwater Design.pdf" in called["after"]["result"]


def test_the_skill_keeps_hermess_rules(hermes, environ, tmp_path) -> None:
    folder = tmp_path / "digup-search"
    folder.mkdir()
    shutil.copy(SKILL, folder)

    done = run(hermes / "python", HERE / "skill_rules.py", folder, environ=environ)

    assert done.returncode == 0, lines_of(done)
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_hermes_lists_the_skill(hermes, environ, home) -> None:
    folder = home / "skills" / "productivity" / "digup-search"
    folder.mkdir(parents=True)
    shutil.copy(SKILL, folder)

    shown = run(hermes / "hermes", "skills", "list", "--source", "local", environ=environ).stdout

    assert re.search(r"digup-search .*productivity.*enabled", shown), shown

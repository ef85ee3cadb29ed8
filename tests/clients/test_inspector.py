"""MCP Inspector's command line: lists, finds nothing to object to, and calls, over pipes and over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.clients.serving import NAMES, TOKEN, Pi, lines_of, run


@pytest.fixture
def environ(tmp_path, pi: Pi) -> dict[str, str]:
    """A home of its own, as it leaves a folder there."""
    return {"HOME": str(tmp_path)}


def asked(inspector: Path, environ: dict[str, str], *arguments: str) -> dict[str, Any]:
    done = run(inspector, "--cli", *arguments, environ=environ)
    assert done.returncode == 0, lines_of(done)
    return json.loads(done.stdout)


def server(pi: Pi) -> list[str]:
    # The Inspector's -e does not take the place of HOME, so the Pi's home is named by what the server reads.
    return ["-e", f"DIGUP_SOURCES_DIR={pi.home}/.local/share/hermes-digup/sources", "--", pi.command, "serve"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_it_lists_the_six_tools(inspector, environ, pi, era: str) -> None:
    shown = asked(inspector, environ, "--protocol-era", era, "--method", "tools/list", *server(pi))

    assert [tool["name"] for tool in shown["tools"]] == NAMES


def test_its_strict_look_at_the_schemas_finds_nothing(inspector, environ, pi) -> None:
    done = run(inspector, "--cli", "--strict", "--method", "tools/list", *server(pi), environ=environ)

    assert done.returncode == 0, lines_of(done)
    assert "warning" not in done.stderr.lower()


def test_it_calls_a_tool(inspector, environ, pi) -> None:
    call = ["--method", "tools/call", "--tool-name", "search_files", "--tool-arg", "query=INV-2026-0042"]

    shown = asked(inspector, environ, *call, "limit=3", *server(pi))

    assert not shown["isError"]
    assert shown["structuredContent"]["hits"][0]["path"].endswith("/Invoice Brightwater Design.pdf")


def test_it_calls_a_tool_over_http(inspector, environ, http_url) -> None:
    where = ["--transport", "http", "--server-url", http_url, "--header", f"Authorization: Bearer {TOKEN}"]
    call = ["--method", "tools/call", "--tool-name", "index_status"]

    shown = asked(inspector, environ, *where, "--stored-auth-only", *call)

    assert shown["structuredContent"]["sources"][0]["machine"] == "macbook"

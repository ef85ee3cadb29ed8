"""The official client of the former major version, which Hermes uses: all tools, both modes, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.clients.serving import NAMES, TOKEN, Pi, lines_of, run

CALLS = Path(__file__).parent / "former_sdk_calls.py"


def called(former_sdk: Path, pi: Pi, *arguments: str) -> dict[str, Any]:
    done = run(former_sdk / "python", CALLS, *arguments, environ=pi.environ)
    assert done.returncode == 0, lines_of(done)
    return json.loads(done.stdout)


def hold_to_the_contract(shown: dict[str, Any], *, structured: bool) -> None:
    """The facts that are the same however the client reached the server."""
    assert shown["protocol"] == "2025-11-25"
    assert shown["names"] == NAMES
    assert shown["schemas"] == (len(NAMES) if structured else 0)
    assert shown["answers"].keys() == set(NAMES)
    everything = [*shown["answers"].values(), *shown["mistakes"], *shown["together"]]
    for answer in everything:
        assert not answer["error"], answer
        assert answer["text"]
        assert (answer["structured"] is not None) is structured
    assert "INV-2026-0042" in shown["answers"]["read_passage"]["text"]
    assert "INV-2026-0042" in shown["answers"]["read_file"]["text"]
    assert len(shown["together"]) == 8


@pytest.mark.parametrize("results", ["text", "both"])
def test_all_six_tools_over_pipes(former_sdk, pi, results: str) -> None:
    shown = called(former_sdk, pi, "stdio", results, pi.command)

    hold_to_the_contract(shown, structured=results == "both")


def test_all_six_tools_over_http(former_sdk, pi, http_url) -> None:
    shown = called(former_sdk, pi, "http", "both", http_url, TOKEN)

    hold_to_the_contract(shown, structured=True)

"""The server as a process: ready at once, protocol alone on standard output, gone when its client goes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.mcp.serving import parameters

GONE_WITHIN_S = 2.0
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}


class Pipes:
    """The server's standard streams, spoken to by hand."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self._number = process, 0

    def send(self, method: str, **params: Any) -> None:
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})

    def greet(self) -> dict[str, Any]:
        self.send("initialize", **HELLO)
        answer = self.receive()
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def leave(self) -> float:
        """Closes standard input; returns how long the server took to go."""
        assert self.process.stdin
        began = time.monotonic()
        self.process.stdin.close()
        self.process.wait(timeout=20)
        return time.monotonic() - began

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()


@contextmanager
def started(home: Path, *options: str, **environ: str) -> Iterator[Pipes]:
    given = parameters(home, *options, **environ)
    with subprocess.Popen(
        [given.command, *given.args],
        env=given.env,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield Pipes(process)
        finally:
            if process.poll() is None:
                process.kill()


def test_the_server_leaves_when_standard_input_closes(pi) -> None:
    with started(pi) as pipes:
        pipes.greet()

        took_s = pipes.leave()

        assert took_s < GONE_WITHIN_S
        assert pipes.process.returncode == 0


def test_the_server_leaves_when_it_is_interrupted_from_the_keyboard(pi) -> None:
    with started(pi) as pipes:
        pipes.greet()

        pipes.process.send_signal(signal.SIGINT)

        assert pipes.process.wait(timeout=GONE_WITHIN_S) == 130


def test_the_server_leaves_in_the_middle_of_a_query(pi) -> None:
    # A server that never answers keeps the call's thread waiting for several seconds.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with started(pi, DIGUP_EMBED_URL=url) as pipes:
            pipes.greet()
            pipes.send("tools/call", name="search_files", arguments={"query": "invoice"})
            connection, _ = silent.accept()

            with connection:
                assert pipes.leave() < GONE_WITHIN_S


def test_standard_output_holds_protocol_alone_with_debug_logging(pi) -> None:
    with started(pi, DIGUP_LOG_LEVEL="DEBUG", DIGUP_NOT_KNOWN="1") as pipes:
        pipes.greet()
        for tool, arguments in (("search_files", {"query": "x"}), ("nonsense", {}), ("index_status", {})):
            pipes.send("tools/call", name=tool, arguments=arguments)
        answers = [pipes.receive() for _ in range(3)]
        pipes.leave()
        assert pipes.process.stdout
        assert pipes.process.stderr
        rest, errors = pipes.process.stdout.read(), pipes.process.stderr.read()

    assert {answer["id"] for answer in answers} == {2, 3, 4}
    assert rest == ""
    assert "DIGUP_NOT_KNOWN" in errors


def test_an_unknown_tool_is_a_fault_that_names_the_known_ones(pi) -> None:
    with started(pi) as pipes:
        pipes.greet()
        pipes.send("tools/call", name="nonsense", arguments={})
        answer = pipes.receive()

    assert answer["result"]["isError"] is True
    assert "search_files" in answer["result"]["content"][0]["text"]


def test_two_servers_answer_from_one_index(pi) -> None:
    with started(pi) as first, started(pi) as second:
        for pipes in (first, second):
            pipes.greet()
            pipes.send("tools/call", name="browse_files", arguments={"limit": 1})
        totals = [pipes.receive()["result"]["structuredContent"]["total"] for pipes in (first, second)]

    assert totals[0] == totals[1] > 0


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch) -> None:
    monkeypatch.delenv("DIGUP_CONFIG", raising=False)

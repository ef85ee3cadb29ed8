"""A client that keeps asking a deployed server, as Hermes does, while something happens to its host."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

WITHIN_S = 60


class Asker:
    """One server process and one question after the other; `restart` ends that process and starts another.

    `answers` holds the text of each answer, `faults` whatever was none.
    """

    def __init__(self, home: Path, question: str, config: Path | None = None) -> None:
        environ = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        environ |= {"DIGUP_CONFIG": str(config)} if config else {}
        program = home / ".local/share/hermes-digup/venv/bin/hermes-digup"
        self._server = StdioServerParameters(
            command=str(program), args=["serve", "--results", "text"], env=environ
        )
        self._question = question
        self._thread = threading.Thread(target=lambda: anyio.run(self._work))
        self._leave, self._ended = threading.Event(), threading.Event()
        self.answers: list[str] = []
        self.faults: list[str] = []
        self.versions: list[str] = []

    def __enter__(self) -> Asker:
        self._thread.start()
        self.more()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(WITHIN_S)

    def more(self, count: int = 3) -> list[str]:
        """Waits for further answers and returns them."""
        before = len(self.answers)
        self.wait(lambda: len(self.answers) >= before + count)
        return self.answers[before:]

    def restart(self) -> None:
        """What a restart of Hermes's gateway does to the server."""
        starts = len(self.versions)
        self._leave.set()
        self.wait(lambda: len(self.versions) > starts)
        self.more()

    def wait(self, until: Callable[[], Any]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not until():
            assert time.monotonic() < deadline, (self.faults, self.answers[-1:])
            assert self._thread.is_alive(), self.faults
            time.sleep(0.02)

    async def _work(self) -> None:
        while not self._ended.is_set() and len(self.faults) < 10:
            self._leave.clear()
            try:
                async with Client(stdio_client(self._server)) as client:
                    self.versions.append(client.server_info.version)
                    await self._ask(client)
            except Exception as error:  # noqa: BLE001 - whatever it is, Hermes would have met it
                self.faults.append(repr(error))

    async def _ask(self, client: Client) -> None:
        while not (self._ended.is_set() or self._leave.is_set()):
            answer = await client.call_tool("search_files", {"query": self._question, "limit": 2})
            text = "\n".join(block.text for block in answer.content if block.type == "text")
            (self.faults if answer.is_error else self.answers).append(text)
            await anyio.sleep(0.1)

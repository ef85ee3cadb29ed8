"""A Pi's home folder with one delivered source, and servers on it that are asked over their pipes."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.doubles.delivery import HOME, SOURCES

ROOT = Path(__file__).parents[2]
SMALL_STACKS = 1 << 20  # RLIMIT_DATA counts a whole stack for each thread, used or not


class Pi:
    """Deliveries are landed here and published by the command, as `receive` does it."""

    def __init__(self, home: Path) -> None:
        self.home, self.source = home, home / SOURCES / "bench"
        shutil.rmtree(home, ignore_errors=True)
        (self.source / "landing").mkdir(parents=True)

    def land(self, index: Path, mark: str) -> None:
        """Lands a copy that differs from all others by a mark."""
        landing = self.source / "landing"
        part = landing / ".part"
        shutil.copyfile(index, part)
        with closing(sqlite3.connect(part)) as database, database:
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("INSERT OR REPLACE INTO meta VALUES('mark', ?)", (mark,))
        part.replace(landing / "index.sqlite")
        with (landing / "index.sqlite").open("rb") as stream:
            digest = hashlib.sha256()
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
        time = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        files = {
            "index.sqlite": {
                "size": (landing / "index.sqlite").stat().st_size,
                "sha256": digest.hexdigest(),
            }
        }
        about = {"source": "bench", "home": HOME, "schema": 5, "script_version": "0.1.0"}
        times = {"taken_at": time, "confirmed_at": time}
        (landing / "manifest.json").write_text(json.dumps({"format": 1, **about, **times, "files": files}))

    def publishing(self) -> subprocess.Popen[bytes]:
        """The command at work."""
        command = [sys.executable, "-m", "hermes_digup", "publish", "--source", "bench", "--json"]
        return subprocess.Popen(command, env=self.environment(), stdout=subprocess.DEVNULL)

    def publish(self) -> int:
        """Publishes, and returns the most memory that took, in bytes."""
        process = self.publishing()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit("the corpus was not published")
        return usage.ru_maxrss << 10

    def current(self) -> str:
        """The generation in use."""
        return (self.source / "current").readlink().name

    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "DIGUP_EMBED_URL": "http://127.0.0.1:9"}


class Server:
    """One server process."""

    def __init__(self, pi: Pi, *, small_stacks: bool = False) -> None:
        limits: Callable[[], None] | None = None
        if small_stacks:

            def limits() -> None:
                resource.setrlimit(resource.RLIMIT_STACK, (SMALL_STACKS, SMALL_STACKS))

        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.server"],
            env={**pi.environment(), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=limits,
        )
        self.asked = 0
        client = {"name": "bench", "version": "1"}
        self._call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def search(self, query: str) -> str:
        """The text of an answer; a failed one ends the benchmark."""
        answer = self._call("tools/call", name="search_files", arguments={"query": query})["result"]
        text = "".join(each["text"] for each in answer["content"])
        if answer.get("isError") or "took too long" in text or "id bench:" not in text:
            raise SystemExit(f"a query failed: {text[:300]}")
        return text

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self.asked += 1
        self._send({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self.asked:
                return answer
        raise SystemExit("the server ended")

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

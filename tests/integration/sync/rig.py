"""A laptop and a Pi on this machine: the real script, sqlite3, rsync, `receive`, publisher."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
from tests.doubles.digup import Index
from tests.doubles.digup_contents import Sample

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "templates" / "laptop" / "digup-sync.sh"
WRITER = Path(__file__).with_name("writer.py")
SSH_DOUBLE = ROOT / "tests" / "doubles" / "ssh_to_receive"
SOURCE = "macbook"


VECTORS = np.random.default_rng(7)


class Pi:
    """The other machine's home, with `receive` and the program where the role puts them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / ".local" / "share" / "hermes-digup"
        self.source = self.data / "sources" / SOURCE
        self.landing = self.source / "landing"
        self.receive = self.data / "bin" / "receive"
        self.keys, self.sshd = home / "authorized_keys", 0
        self.receive.parent.mkdir(parents=True)
        self.landing.mkdir(parents=True)
        shutil.copy(ROOT / "templates" / "pi" / "receive", self.receive)
        self.receive.chmod(0o755)
        program = self.data / "venv" / "bin" / "hermes-digup"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m hermes_digup "$@"\n')
        program.chmod(0o755)

    def admit(self, key: str, bound: int = 900) -> None:
        """The laptop's line in authorized_keys; a delivery may take so many seconds."""
        self.keys.write_text(f'restrict,command="{shlex.quote(str(self.receive))} {SOURCE} {bound}" {key}')

    def is_idle(self) -> bool:
        """Nothing of a login is left at work; sshd's own part in it may wait for a line that went dead."""
        return all(name.startswith("sshd") for name in descendants(self.sshd).values())

    def query(self, sql: str, name: str = "index.sqlite") -> list[tuple[object, ...]]:
        """What a server would read from the copy in use."""
        with closing(
            sqlite3.connect(f"file:{self.source / 'current' / name}?immutable=1", uri=True)
        ) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return database.execute(sql).fetchall()

    @property
    def mark(self) -> str | None:
        """The mark of the copy in use; None when there is none."""
        if not (self.source / "current").exists():
            return None
        return str(self.query("SELECT value FROM meta WHERE key = 'mark'")[0][0])

    def leftovers(self) -> list[str]:
        """Everything in the landing that is not a delivered file."""
        known = {"index.sqlite", "code.sqlite", "manifest.json", "confirmed.json"}
        return sorted(path.name for path in self.landing.iterdir() if path.name not in known)


class Laptop:
    """A home folder with DigUp's index in it, and the script's settings."""

    def __init__(self, home: Path, pi: Pi) -> None:
        self.home, self.pi = home, pi
        self.config = home / ".config" / "hermes-digup"
        self.base = home / "Library" / "Application Support" / "hermes-digup"
        self.log = home / "Library" / "Logs" / "hermes-digup-sync.log"
        self.folder = home / "Library" / "Application Support" / "DigUp" / "index.noindex"
        self.settings: dict[str, str] = {"DIGUP_SOURCE": SOURCE, "DIGUP_SSH": str(SSH_DOUBLE)}
        self.config.mkdir(parents=True)
        (self.config / "ssh_config").write_text(f"# forced: {pi.receive} {SOURCE}\n")

    def index(self) -> Index:
        """DigUp's own connection, as while the app runs."""
        return Index(self.folder, home=str(self.home))

    def set_mark(self, mark: str, name: str = "index.sqlite") -> None:
        with closing(self.index()) as index:
            index.database(name).execute("INSERT OR REPLACE INTO meta VALUES ('mark', ?)", (mark,))

    def fill(self, mark: str = "1") -> None:
        """A small index that can be told apart by its mark."""
        with closing(self.index()) as index:
            index.add(Sample("Documents/a.md", "doc", ("Bread and butter.",)))
        self.set_mark(mark)

    def change(self, mark: str, ballast: int = 300_000) -> None:
        """A new mark, and so much that no former copy holds: the next transfer takes a while."""
        with closing(self.index()) as index:
            index.database("index.sqlite").execute(
                "INSERT OR REPLACE INTO meta VALUES ('ballast', hex(randomblob(?)))", (ballast // 2,)
            )
        self.set_mark(mark)

    def fill_large(self, passages: int) -> None:
        """An index of about 3.2 kB per passage: words and a vector each."""
        self.fill()
        words = random.Random(7)
        with closing(self.index()) as index:
            database = index.database("index.sqlite")
            database.execute("BEGIN")
            for number in range(10, passages + 10):
                text = " ".join(f"{words.getrandbits(20):x}" for _ in range(60))
                database.execute(
                    "INSERT INTO segments VALUES (?, 1, 'passage', 'text', 0, 0, ?, ?)",
                    (number, text[:200], new_vector()),
                )
                database.execute("INSERT INTO fts(rowid, name, body) VALUES (?, '', ?)", (number, text))
            database.execute("COMMIT")

    def change_rows(self, number: int) -> None:
        """As after DigUp has read files again: other excerpts and vectors in rows all over the index."""
        with closing(self.index()) as index:
            database = index.database("index.sqlite")
            chosen = "SELECT id FROM segments WHERE id >= 10 ORDER BY random() LIMIT ?"
            for row in database.execute(chosen, (number,)).fetchall():
                database.execute(
                    "UPDATE segments SET excerpt = hex(randomblob(50)), vec = ? WHERE id = ?",
                    (new_vector(), *row),
                )

    def start_writer(self) -> subprocess.Popen[str]:
        """DigUp, committing every 4 ms from now on; each commit is a line of its output."""
        writer = subprocess.Popen(
            [sys.executable, str(WRITER), str(self.folder / "index.sqlite")],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout and writer.stdout.readline()
        return writer

    def command(self, *options: str) -> tuple[list[str], dict[str, str]]:
        lines = [f'{key}="{value}"' for key, value in self.settings.items()]
        (self.config / "sync.env").write_text("# settings\n" + "\n".join(lines) + "\n")
        return ["/bin/bash", str(SCRIPT), *options], {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}

    def run(
        self,
        *options: str,
        environment: Mapping[str, str] | None = None,
        timeout: float = 240,
        **more: object,
    ) -> subprocess.CompletedProcess[str]:
        command, own = self.command(*options)
        return subprocess.run(
            command,
            env={**own, **(environment or {})},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
            **more,  # type: ignore[call-overload]  # passed on as they are
        )

    def start(self, *options: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """In a process group of its own, as launchd starts it."""
        command, own = self.command(*options)
        return subprocess.Popen(
            command,
            env={**own, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def sync(self, *options: str) -> dict[str, object]:
        """A run that must succeed; returns its status."""
        done = self.run(*options)
        assert done.returncode == 0, done.stderr
        return self.status()

    def status(self) -> dict[str, object]:
        return json.loads((self.base / "status.json").read_text())

    def leftovers(self) -> list[str]:
        known = {"delivered", "status.json"}
        return sorted(path.name for path in self.base.iterdir() if path.name not in known)

    def program(self, name: str, text: str) -> str:
        """A stand-in program in this home; returns its path."""
        path = self.home / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def counting_rsync(self) -> Path:
        """rsync, with its statistics written down; see `sent`."""
        record = self.home / "rsync-stats"
        self.settings["DIGUP_RSYNC"] = self.program(
            "counting-rsync", f'#!/bin/sh\nexec /usr/bin/rsync --stats "$@" >>"{record}"\n'
        )
        return record

    def recording_rsync(self, record: Path) -> None:
        """rsync, with the words of each call written down."""
        self.settings["DIGUP_RSYNC"] = self.program(
            "recording-rsync", f'#!/bin/sh\necho "$*" >>"{record}"\nexec /usr/bin/rsync "$@"\n'
        )


def new_vector() -> bytes:
    values = VECTORS.standard_normal(768)
    return (values / np.linalg.norm(values)).astype("<f2").tobytes()


def sent(record: Path) -> tuple[int, int]:
    """Bytes of file data, and bytes in all, that rsync has sent since this was last asked."""
    text = record.read_text().replace(",", "")
    record.write_text("")
    data, every = (
        re.findall(rf"^{name}: (\d+)", text, re.MULTILINE) for name in ("Literal data", "Total bytes sent")
    )
    return sum(map(int, data)), sum(map(int, every))


def wait_for(fact: Callable[[], object], seconds: float = 20) -> None:
    """Polls until the fact holds. Raises: AssertionError at the deadline."""
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


def descendants(pid: int) -> dict[int, str]:
    """Every process below this one, with its name."""
    found, parents = {pid: ""}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name, _, rest = (folder / "stat").read_text().partition(" (")[2].rpartition(") ")
            if not rest.startswith("Z"):
                parents[int(folder.name)] = (int(rest.split()[1]), name)
    while new := {
        child: name for child, (parent, name) in parents.items() if parent in found and child not in found
    }:
        found |= new
    del found[pid]
    return found


def start_of(pid: int) -> str:
    """When a process began, as the script's lock knows it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()

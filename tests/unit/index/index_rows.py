"""Builds DigUp databases row by row, sound and unsound ones, for the tests of index and ranking."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
from tests.doubles.digup import SCHEMA

from hermes_digup.ranking import folder_text, keyword_text, normalized

HOME = "/Users/ana"


class Rows:
    """A database being written. Use as a context; afterwards the file stands by itself, without a log."""

    def __init__(self, path: Path, *, schema: int = 5, tables: str = SCHEMA):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript(tables)
        self.db.execute(f"PRAGMA user_version = {schema}")
        self.db.execute("BEGIN")

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *_):
        self.db.execute("COMMIT")
        self.db.close()

    def file(self, path, kind="doc", *, info=None, modified=1.7e9, state="done"):
        """Adds a file with its name; returns its number."""
        info = json.dumps(info) if isinstance(info, dict) else info
        columns = (
            "INSERT INTO files(path, kind, size, mtime, inode, device, state, info) VALUES(?,?,?,?,0,0,?,?)"
        )
        number = self.db.execute(columns, (path, kind, 1000, modified, state, info)).lastrowid
        row = self.db.execute(
            "INSERT INTO segments(file, kind, modality) VALUES(?, 'name', 'none')", (number,)
        )
        name, folder = folder_text(path, HOME)
        names = (row.lastrowid, normalized(name), normalized(folder))
        self.db.execute("INSERT INTO fts(rowid, name, body) VALUES(?,?,?)", names)
        return number

    def segment(  # noqa: PLR0913 - the columns of a row
        self, file, kind="chunk", *, place=None, text=None, vector=None, modality="text"
    ):
        """Adds a segment; `vector` is an array of 768 numbers, or bytes as they are. Returns its number."""
        blob = vector if vector is None or isinstance(vector, bytes) else vector.astype("<f2").tobytes()
        loc, end = place if isinstance(place, tuple) else (place, None)
        excerpt = " ".join(text.split())[:240] if text else None
        number = self.db.execute(
            "INSERT INTO segments(file, kind, modality, loc, loc_end, excerpt, vec) VALUES(?,?,?,?,?,?,?)",
            (file, kind, modality if blob is not None else "none", loc, end, excerpt, blob),
        ).lastrowid
        if text:
            body, original = keyword_text(text)
            self.db.execute(
                "INSERT INTO fts(rowid, name, body, original) VALUES(?, '', ?, ?)", (number, body, original)
            )
        return number


def direction(place: int, strength: float = 1.0):
    """A vector that points mostly one way. Its products with others of its kind are exact in float32."""
    vector = np.zeros(768, np.float32)
    vector[place % 768] = strength
    return vector


def small_index(path: Path) -> Path:
    """A handful of files of every sort, with words, vectors, pages and places."""
    with Rows(path) as rows:
        lease = rows.file(
            f"{HOME}/Documents/Zürich/lease.txt", info={"chunks": "3", "chars": "60"}, modified=3e9
        )
        for place, text in enumerate(
            ("the tenant pays the rent", "the deposit is two rents", "notice of a month"), 1
        ):
            rows.segment(lease, place=place, text=text * 3, vector=direction(place))
        scan = rows.file(
            f"{HOME}/Documents/Zu\u0308rich old/scan.pdf", "pdf", info={"pages": "2", "scanned_pages": "1"}
        )
        rows.segment(scan, "page", place=1, text="rent of 1999", vector=direction(4))
        rows.segment(scan, "page_image", place=1, vector=direction(5), modality="image")
        shot = rows.file(f"{HOME}/Desktop/Screenshot.png", "screenshot", info={"width": "10"})
        rows.segment(shot, "image", vector=direction(6), modality="image")
        rows.segment(shot, "ocr", text="Error: connection reset, rent overdue")
        talk = rows.file("/Volumes/Archive/talk.m4a", "audio", info={"duration": "61.0"})
        rows.segment(talk, "audio", place=(0, 30), vector=direction(7), modality="audio")
        rows.segment(talk, "audio", place=(25, 55), vector=direction(8), modality="audio")
        book = {"pages": "120", "read_to": "30", "read_end": "120"}
        rows.file(f"{HOME}/Books/long.pdf", "pdf", state="partial", info=book)
        rows.db.execute("INSERT INTO meta VALUES('vector_source', 'model@1234567')")
    return path

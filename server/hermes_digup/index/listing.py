"""What the tools ask of a database besides searching: one file, its passages, a listing, counts, samples."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hermes_digup.index.door import as_number, as_real, as_text, askable
from hermes_digup.index.shapes import (
    FILE_COLUMNS,
    PASSAGE_COLUMNS,
    PASSAGES,
    file_of,
    info_of,
    passage_of,
)
from hermes_digup.index.vectors import GOOD_INFO, IS_VECTOR
from hermes_digup.records import KINDS, File, FolderFilter, Passage

if TYPE_CHECKING:
    from hermes_digup.records import Vector

_KNOWN_KINDS: Final = frozenset((*KINDS, "code"))
_LARGEST: Final = 2**63 - 1
_SAMPLED_FILES: Final = 64
_SAMPLED_PER_FILE: Final = 8
_LEAST_SAMPLE_LENGTH: Final = 40


class Unfinished(NamedTuple):
    """A long file that DigUp has read only up to a page or piece."""

    path: str
    read_to: int
    read_end: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What an index holds. `bad_info_rows`: files whose info is no JSON; they are searched all the same."""

    files_by_kind: dict[str, int]
    files_by_state: dict[str, int]
    segments: int
    vectors: int
    bad_info_rows: int
    unfinished: list[Unfinished]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which files a listing shows. `kinds`, `folder`, `name_contains` None: any."""

    kinds: Collection[str] | None = None
    folder: FolderFilter | None = None
    name_contains: str | None = None

    def takes(self, path: str, kind: str) -> bool:
        """Whether a file belongs in the listing. A kind unknown to DigUp passes no kind filter."""
        if self.kinds is not None and not (kind in self.kinds and kind in _KNOWN_KINDS):
            return False
        if self.folder is not None and not self.folder.contains(path):
            return False
        return not self.name_contains or plain(self.name_contains) in plain(path.rpartition("/")[2])


def plain(text: str) -> str:
    """A text without case and accents, for finding names as people type them."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(scalar for scalar in apart if not unicodedata.combining(scalar))


def counts(connection: sqlite3.Connection, vectors: int) -> Counts:
    """What an index holds; reads every file's row."""
    kinds: Counter[str] = Counter()
    states: Counter[str] = Counter()
    for kind, state, number in connection.execute(
        "SELECT kind, state, count(*) FROM files GROUP BY kind, state"
    ):
        kinds[as_text(kind)] += number
        states[as_text(state)] += number
    bad = f"SELECT count(*) FROM files f WHERE f.info IS NOT NULL AND NOT {GOOD_INFO}"  # noqa: S608 - constant
    return Counts(
        files_by_kind=dict(kinds),
        files_by_state=dict(states),
        segments=connection.execute("SELECT count(*) FROM segments").fetchone()[0],
        vectors=vectors,
        bad_info_rows=connection.execute(bad).fetchone()[0],
        unfinished=list(_unfinished(connection)),
    )


def file_at(connection: sqlite3.Connection, path: str) -> File | None:
    """The file with a path, in any Unicode spelling; the exact spelling first."""
    asked = askable(path)
    spellings = dict.fromkeys(
        (asked, unicodedata.normalize("NFC", asked), unicodedata.normalize("NFD", asked))
    )
    sql = f"SELECT {FILE_COLUMNS} FROM files f WHERE f.path = ?"  # noqa: S608 - constant
    for spelling in spellings:
        row = connection.execute(sql, (spelling,)).fetchone()
        if row:
            return file_of(row)
    return None if asked.isascii() else _file_spelled_like(connection, asked)


def file_numbered(connection: sqlite3.Connection, number: int) -> File | None:
    """The file with a number."""
    if not 0 <= number <= _LARGEST:
        return None
    sql = f"SELECT {FILE_COLUMNS} FROM files f WHERE f.id = ?"  # noqa: S608 - constant
    row = connection.execute(sql, (number,)).fetchone()
    return file_of(row) if row else None


def passage_numbered(connection: sqlite3.Connection, number: int) -> Passage | None:
    """The segment with a number, with its text."""
    if not 0 <= number <= _LARGEST:
        return None
    sql = f"SELECT {PASSAGE_COLUMNS} FROM {PASSAGES} WHERE s.id = ?"  # noqa: S608 - constant
    row = connection.execute(sql, (number,)).fetchone()
    return passage_of(row) if row else None


def passages(connection: sqlite3.Connection, file: int) -> list[Passage]:
    """A file's segments in reading order (page, piece, line, second), without the one that holds its name."""
    sql = f"""
        SELECT {PASSAGE_COLUMNS} FROM {PASSAGES} WHERE s.file = ? AND s.kind <> 'name' ORDER BY s.loc, s.id
    """  # noqa: S608 - constant
    return [passage_of(row) for row in connection.execute(sql, (file,))]


def browse(connection: sqlite3.Connection, wanted: Wanted, limit: int, offset: int) -> tuple[list[File], int]:
    """One page of the wanted files, newest first, and how many there are in all."""
    found = [
        (-(as_real(modified) or 0.0), number)
        for number, path, kind, modified in connection.execute("SELECT id, path, kind, mtime FROM files")
        if wanted.takes(as_text(path), as_text(kind))
    ]
    found.sort()
    start = max(offset, 0)
    page = [file_numbered(connection, number) for _, number in found[start : start + max(limit, 0)]]
    return [file for file in page if file is not None], len(found)


def samples(
    connection: sqlite3.Connection, count: int, *, is_code: bool
) -> list[tuple[Passage, File, Vector]]:
    """Passages whose embedded text can be made again from the index alone, from as many files as possible.

    Texts that were not changed by normalising come first: their bytes are the ones that were embedded. Pages
    of a PDF only stand in, as the title that was embedded with them may not be stored.
    """
    kinds = ("lines", "cells") if is_code else ("chunk", "page")
    picked: list[tuple[Passage, File, Vector]] = []
    for kind in kinds:
        for unchanged in (True, False):
            if len(picked) < count:
                picked += _samples(connection, kind, count - len(picked), unchanged=unchanged)
    return picked


def _samples(
    connection: sqlite3.Connection, kind: str, count: int, *, unchanged: bool
) -> list[tuple[Passage, File, Vector]]:
    sql = f"""
        SELECT {PASSAGE_COLUMNS}, s.vec, t.original IS NULL FROM segments s JOIN fts t ON t.rowid = s.id
        WHERE s.file = ? AND s.kind = ? AND {IS_VECTOR} ORDER BY s.loc, s.id LIMIT {_SAMPLED_PER_FILE}
    """  # noqa: S608 - constant
    by_file: list[list[tuple[Passage, File, Vector]]] = []
    for number in _spread(connection, kind):
        file = file_numbered(connection, number)
        usable = []
        for row in connection.execute(sql, (number, kind)) if file else ():
            passage = passage_of(row)
            is_unchanged = bool(row[-1]) and (passage.text or "").isascii()
            if file and is_unchanged == unchanged and len(passage.text or "") >= _LEAST_SAMPLE_LENGTH:
                usable.append((passage, file, np.frombuffer(row[-2], "<f2").astype(np.float32)))
        by_file.append(usable)
    turns = (each for turn in zip_longest(*by_file) for each in turn if each is not None)
    return [each for each, _ in zip(turns, range(count), strict=False)]


def _spread(connection: sqlite3.Connection, kind: str) -> list[int]:
    """Files that have such segments with a vector, spread over the index."""
    sql = f"SELECT DISTINCT s.file FROM segments s WHERE s.kind = ? AND {IS_VECTOR} ORDER BY s.file"  # noqa: S608 - constants only
    numbers = [as_number(number) for (number,) in connection.execute(sql, (kind,))]
    return numbers[:: max(len(numbers) // _SAMPLED_FILES, 1)][:_SAMPLED_FILES]


def _file_spelled_like(connection: sqlite3.Connection, path: str) -> File | None:
    wanted = unicodedata.normalize("NFC", path)
    for number, stored in connection.execute("SELECT id, path FROM files"):
        if unicodedata.normalize("NFC", as_text(stored)) == wanted:
            return file_numbered(connection, number)
    return None


def _unfinished(connection: sqlite3.Connection) -> Iterator[Unfinished]:
    for path, info in connection.execute("SELECT path, info FROM files WHERE state = 'partial' ORDER BY id"):
        content = info_of(info)
        yield Unfinished(as_text(path), _count(content.get("read_to")), _count(content.get("read_end")))


def _count(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0

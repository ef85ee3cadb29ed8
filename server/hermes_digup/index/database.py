"""One opened DigUp database with its vectors: answers what ranking asks, and ranks nothing.

What the tools ask (a file, its passages, a listing, counts) is in `listing`; both share the connections here.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hermes_digup.errors import DigupError, NoIndexError, RefusedCopyError
from hermes_digup.index import kernel, listing
from hermes_digup.index.bundles import bundle
from hermes_digup.index.checks import check_shape, try_queries
from hermes_digup.index.connections import Connections
from hermes_digup.index.door import as_text, as_text_or_none, askable, stopping_when
from hermes_digup.index.keywords import Sought, best_rows, snippets
from hermes_digup.index.listing import Counts, Wanted
from hermes_digup.index.postings import Postings
from hermes_digup.index.shapes import (
    FILE_COLUMNS,
    KNOWN_SCHEMA,
    PASSAGE_COLUMNS,
    SEGMENT_COLUMNS,
    TEXT,
    file_of,
    segment_of,
)
from hermes_digup.index.stored import StoredVectors, proved, stored_vectors
from hermes_digup.records import File, FolderFilter, KeywordRow, Passage, PhraseRow, Segment, VectorRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hermes_digup.records import Vector

CODE_FILE: Final = "code.sqlite"

_FOLDERS_KEPT: Final = 8

_TEXTS: Final = "SELECT count(*) FROM fts_docsize"
_KINDS: Final = "SELECT id, kind FROM files WHERE id IN (SELECT value FROM json_each(?))"
_ORIGINALS: Final = """
    SELECT rowid, original FROM fts
    WHERE rowid IN (SELECT value FROM json_each(?)) AND original IS NOT NULL
"""
_PHRASE_ROWS: Final = f"""
    SELECT {PASSAGE_COLUMNS} FROM fts t CROSS JOIN segments s ON s.id = t.rowid
    WHERE t.fts MATCH ?1 AND +t.rowid IN (SELECT id FROM segments WHERE file = ?2)
    ORDER BY s.loc, s.id LIMIT ?3
"""  # noqa: S608 - constants only


class _Inside(NamedTuple):
    """The files inside a folder, also in ascending order."""

    files: frozenset[int]
    numbers: NDArray[np.int64]


class Database:
    """One opened, unchanging DigUp database.

    Threads: safe; a connection is used by one at a time, and new ones are opened as needed.
    Raises, everywhere: RefusedCopyError when the file turns out damaged; BusyError inside `stopping_when`.
    """

    def __init__(self, path: Path, *, packed: Path | None = None) -> None:
        """Opens a database, with its packed vectors if they fit, and tries one query of each kind.

        That it is sound as a whole is `check_database`'s word, at publishing. Raises: NoIndexError when
        there is no such file; RefusedCopyError.
        """
        self.path = path
        self.is_code = path.name == CODE_FILE
        self.warnings: tuple[str, ...] = ()
        self.vectors_from = ""  # "packed": mapped; "rows": read from the database itself
        self._packed = packed
        self._folders: dict[FolderFilter, _Inside] = {}
        self._lock = threading.Lock()
        self._vectors: StoredVectors | None = None
        self._texts: int | None = None
        self._postings = Postings()
        self._scoring = threading.Lock()  # held by the thread that scores what was asked for again
        self._connections = Connections(path)
        if not path.is_file():
            raise NoIndexError(f"There is no {path.name}", where=str(path.parent))
        try:
            with self._connections.one() as connection:
                check_shape(connection, path)
                self.schema: int = connection.execute("PRAGMA user_version").fetchone()[0]
                self.vector_source = _vector_source(connection)
                self._use(stored_vectors(path, packed, connection))
                try_queries(connection)
        except BaseException:
            self._connections.close()
            raise

    def prove(self) -> None:
        """Reads all packed vectors once, and turns to the rows when one is not as it was written.

        Takes as long as reading the file; searches go on meanwhile, and it ends early when this is closed.
        """
        vectors = self._vectors
        if self._packed is None or vectors is None:
            return
        with self._connections.one() as connection:
            found = proved(vectors, self.path, self._packed, connection, lambda: self._vectors is None)
        with self._lock:
            if self._vectors is not None:
                self._use(found)

    def close(self) -> None:
        """Closes the file; a query still at work ends first."""
        self._connections.close()
        with self._lock:
            self._vectors = None

    def interrupt(self) -> None:
        """Stops every query at work in this database, whoever asked."""
        self._connections.interrupt()

    # What ranking asks.

    def vector_rows(self) -> VectorRows:
        """The columns of every stored vector, in order of (file, segment)."""
        return self._opened().rows

    def cosines(self, query: Vector) -> NDArray[np.float32]:
        """Dot products of the query with every stored vector. Shapes: query (768,); result (n,)."""
        return kernel.cosines(self._opened().matrix, query)

    def files_in(self, folder: FolderFilter) -> frozenset[int]:
        """Numbers of all files inside a folder, at any depth."""
        return self._inside(folder).files

    def keyword_rows(
        self, patterns: Sequence[str], limit: int, folder: FolderFilter | None
    ) -> list[KeywordRow]:
        """Segments that match any FTS expression, best bm25 first, then by number; in a folder if given."""
        files = self._inside(folder).numbers if folder is not None else None
        owners = self._opened().owners
        inside = partial(owners.are_in, files) if files is not None else None
        again = self._postings.worth_scoring(patterns)
        with self._connections.one() as connection:
            if self._texts is None:
                self._texts = int(connection.execute(_TEXTS).fetchone()[0])
            rows = [self._postings.of(connection, each) for each in patterns]
            scores = self._postings.scores(connection, patterns)
            found = best_rows(connection, Sought(patterns, rows, scores, self._texts, inside), limit)
        if again:
            self._score_later(again)
        return owners.of(found)

    def files_matching(self, patterns: Sequence[str], files: Collection[int]) -> list[set[int]]:
        """For each FTS expression, which of these files match it in any row, the name row included."""
        with self._connections.one() as connection:
            rows = [self._postings.of(connection, each) for each in patterns]
            return self._opened().owners.with_any(rows, files)

    def phrase_rows(self, match: str, file: int, limit: int) -> list[PhraseRow]:
        """The rows of one file that match, in order of loc (none first)."""
        with self._connections.one() as connection:
            found = connection.execute(_PHRASE_ROWS, (askable(match), file, limit)).fetchall()
        return [PhraseRow(row[0], segment_of(row).loc, as_text(row[-1])) for row in found]

    def marked(self, patterns: Sequence[str], segments: Collection[int]) -> dict[int, str]:
        """The text index's own snippets of those of the segments that match any, matches in « »."""
        with self._connections.one() as connection:
            found = sum(len(self._postings.of(connection, each)) for each in patterns)
            made = snippets(connection, patterns, found, segments)
        return {number: as_text(text) for number, text in made.items()}

    def originals(self, segments: Collection[int]) -> dict[int, str]:
        """Texts as written, of those of the segments whose text normalising changed."""
        with self._connections.one() as connection:
            rows = connection.execute(_ORIGINALS, (bundle(segments),)).fetchall()
        return {number: as_text(text) for number, text in rows}

    def text(self, segment: int) -> str | None:
        """A segment's text as written; None when it has none."""
        sql = f"SELECT {TEXT} FROM fts t WHERE t.rowid = ?"  # noqa: S608 - constant
        with self._connections.one() as connection:
            row = connection.execute(sql, (segment,)).fetchone()
        return as_text_or_none(row[0]) if row else None

    def files(self, numbers: Collection[int]) -> dict[int, File]:
        """The files with these numbers."""
        sql = f"SELECT {FILE_COLUMNS} FROM files f WHERE f.id IN (SELECT value FROM json_each(?))"  # noqa: S608 - constants only
        with self._connections.one() as connection:
            return {row[0]: file_of(row) for row in connection.execute(sql, (bundle(numbers),)).fetchall()}

    def segments(self, numbers: Collection[int]) -> dict[int, Segment]:
        """The segments with these numbers."""
        sql = f"SELECT {SEGMENT_COLUMNS} FROM segments s WHERE s.id IN (SELECT value FROM json_each(?))"  # noqa: S608 - constants only
        with self._connections.one() as connection:
            return {row[0]: segment_of(row) for row in connection.execute(sql, (bundle(numbers),)).fetchall()}

    def file_kinds(self, numbers: Collection[int]) -> dict[int, str]:
        """The kinds, as stored, of the files with these numbers."""
        with self._connections.one() as connection:
            rows = connection.execute(_KINDS, (bundle(numbers),)).fetchall()
        return {number: as_text(kind) for number, kind in rows}

    # What the tools ask.

    def counts(self) -> Counts:
        """What this index holds; reads every file's row."""
        with self._connections.one() as connection:
            return listing.counts(connection, len(self.vector_rows().segment))

    def file(self, path: str) -> File | None:
        """The file with a path, in any Unicode spelling."""
        with self._connections.one() as connection:
            return listing.file_at(connection, path)

    def file_by_id(self, number: int) -> File | None:
        """The file with a number."""
        with self._connections.one() as connection:
            return listing.file_numbered(connection, number)

    def segment(self, number: int) -> Passage | None:
        """The segment with a number, with its text as written."""
        with self._connections.one() as connection:
            return listing.passage_numbered(connection, number)

    def passages(self, file: int) -> list[Passage]:
        """A file's segments in reading order (page, piece, line, second), without its name's."""
        with self._connections.one() as connection:
            return listing.passages(connection, file)

    def browse(
        self,
        *,
        kinds: Collection[str] | None = None,
        folder: FolderFilter | None = None,
        name_contains: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> tuple[list[File], int]:
        """One page of files, newest first, and how many there are in all. Filters None: any."""
        with self._connections.one() as connection:
            return listing.browse(connection, Wanted(kinds, folder, name_contains), limit, offset)

    def samples(self, count: int) -> list[tuple[Passage, File, Vector]]:
        """Passages with their stored vectors whose embedded text can be made again, of several files."""
        with self._connections.one() as connection:
            return listing.samples(connection, count, is_code=self.is_code)

    def _score_later(self, expressions: Sequence[str]) -> None:
        """Scores what was asked for again, for the next time; nobody waits for it, or needs it."""
        if self._scoring.acquire(blocking=False):
            try:
                threading.Thread(target=self._score, args=(expressions,), name="words", daemon=True).start()
            except RuntimeError:  # no more threads, or no memory for one
                self._scoring.release()

    def _score(self, expressions: Sequence[str]) -> None:
        """Has scores made until all are or this is closed."""
        try:
            with (
                suppress(DigupError),
                stopping_when(lambda: self._vectors is None),
                self._connections.one() as connection,
            ):
                for each in expressions:
                    self._postings.score(connection, each)
        finally:
            self._scoring.release()

    def _opened(self) -> StoredVectors:
        vectors = self._vectors
        if vectors is None:
            raise RefusedCopyError(f"{self.path.name} is closed", where=str(self.path))
        return vectors

    def _use(self, vectors: StoredVectors) -> None:
        newer = f"{self.path.name} has DigUp's schema {self.schema}, newer than the {KNOWN_SCHEMA} known here"
        self.warnings = vectors.warnings + ((newer,) if self.schema > KNOWN_SCHEMA else ())
        self.vectors_from, self._vectors = vectors.source, vectors

    def _inside(self, folder: FolderFilter) -> _Inside:
        with self._lock:
            known = self._folders.get(folder)
        if known is None:
            known = self._look_into(folder)
            with self._lock:
                if len(self._folders) >= _FOLDERS_KEPT:
                    self._folders.clear()
                self._folders[folder] = known
        return known

    def _look_into(self, folder: FolderFilter) -> _Inside:
        with self._connections.one() as connection:
            rows = connection.execute("SELECT id, path FROM files")
            files = frozenset(number for number, path in rows if folder.contains(as_text(path)))
        return _Inside(files, np.sort(np.fromiter(files, np.int64, len(files))))


def _vector_source(connection: sqlite3.Connection) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = 'vector_source'").fetchone()
    return (as_text(row[0]) or None) if row else None

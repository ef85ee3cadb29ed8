"""Whether a database that arrived is a sound DigUp index, before anything is served from it.

Each refusal is one sentence that names the file and says what is wrong with it. Nothing is ever changed.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from hermes_digup.errors import RefusedCopyError
from hermes_digup.index.door import RESYNC, as_text, connect, reading
from hermes_digup.index.plain_files import ordinary_file
from hermes_digup.index.postings import BM25
from hermes_digup.index.shapes import (
    FILE_COLUMNS,
    KNOWN_SCHEMA,
    PASSAGE_COLUMNS,
    PASSAGES,
    file_of,
    passage_of,
)
from hermes_digup.index.vectors import IS_VECTOR

TOKENIZER: Final = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M*'"

_MAGIC: Final = b"SQLite format 3\0"
_COLUMNS: Final = {
    "meta": {"key", "value"},
    "files": {"id", "path", "kind", "size", "mtime", "state", "detail", "info"},
    "segments": {"id", "file", "kind", "modality", "loc", "loc_end", "excerpt", "vec"},
    "fts": {"name", "body", "original"},
}
# Expressions that reading or checking a table runs. An index over plain columns has one pair of brackets.
_COMPUTES: Final = {
    "table": re.compile(r"\b(?:check|as|default)\s*\(", re.IGNORECASE),
    "index": re.compile(r"\(.*\(|\bwhere\b", re.IGNORECASE | re.DOTALL),
}
_MIGRATE: Final = "Open DigUp on that machine once, so that it brings its index up to date."


def check_database(path: Path, *, is_code: bool) -> None:
    """Proves that a database can be served; opens it immutable and changes nothing.

    Raises: RefusedCopyError with the reason as one sentence.
    """
    _check_file(path)
    with reading(path), closing(connect(path)) as connection:
        check_shape(connection, path)
        _check_integrity(connection, path)
        _check_rows(connection, path, is_code=is_code)
        try_queries(connection)


def check_shape(connection: sqlite3.Connection, path: Path) -> None:
    """Whether a database is DigUp's, of a schema we can read, and holds nothing that runs when it is read.

    Raises: RefusedCopyError; sqlite3.Error.
    """
    _check_schema(connection, path)
    _check_tables(connection, path)


def refuse(path: Path, what: str, fix: str = RESYNC) -> RefusedCopyError:
    """A refusal of one file."""
    return RefusedCopyError(f"{path.name} {what}", where=str(path), fix=fix)


def _check_file(path: Path) -> None:
    try:
        with ordinary_file(path) as descriptor:
            head = os.read(descriptor, len(_MAGIC))
    except OSError as error:
        raise refuse(path, f"cannot be read: {error.strerror}") from error
    if head != _MAGIC:
        raise refuse(path, "is no SQLite database" if head else "is empty")


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    tables = {as_text(name) for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not tables & set(_COLUMNS):
        raise refuse(path, "is a SQLite database, but not DigUp's", "Check which folder the sync sends.")
    schema = connection.execute("PRAGMA user_version").fetchone()[0]
    if 1 <= schema < KNOWN_SCHEMA:
        raise refuse(path, f"has DigUp's schema {schema}, and {KNOWN_SCHEMA} or newer is needed", _MIGRATE)
    if schema < 1:
        raise refuse(path, f"has the schema number {schema}, which DigUp never writes")


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Only what DigUp makes is let in: anything else in a schema may run somebody's SQL when it is read."""
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        if kind not in ("table", "index"):
            raise refuse(path, f"holds a {as_text(kind)}, which DigUp never makes")
        if as_text(name).lower() != "fts" and re.match(r"\s*create\s+virtual", as_text(sql), re.IGNORECASE):
            raise refuse(path, "holds a virtual table, which DigUp never makes")
        if _COMPUTES[kind].search(as_text(sql)):
            raise refuse(path, "computes values in its tables, which DigUp never does")
    for table, wanted in _COLUMNS.items():
        described = connection.execute(
            "SELECT name, pk, hidden FROM pragma_table_xinfo(?)", (table,)
        ).fetchall()
        if not described:
            raise refuse(path, f"has no table {table}")
        missing = wanted - {as_text(name) for name, _, hidden in described if table == "fts" or not hidden}
        if missing:
            raise refuse(path, f"has no column {min(missing)} in its table {table}")
    _check_keys(connection, path)
    _check_text_index(connection, path)


def _check_keys(connection: sqlite3.Connection, path: Path) -> None:
    for table in ("files", "segments"):
        keys = connection.execute(
            "SELECT name, upper(type) FROM pragma_table_info(?) WHERE pk", (table,)
        ).fetchall()
        if keys != [("id", "INTEGER")]:
            raise refuse(path, f"has a table {table} that is not numbered as DigUp's is")


def _check_text_index(connection: sqlite3.Connection, path: Path) -> None:
    row = connection.execute("SELECT type, sql FROM sqlite_master WHERE name = 'fts'").fetchone()
    sql = " ".join(as_text(row[1]).split()) if row else ""
    made = re.fullmatch(
        r"CREATE VIRTUAL TABLE (?:IF NOT EXISTS )?\"?fts\"? USING fts5 ?\((.*)\)", sql, re.IGNORECASE
    )
    if made is None:
        raise refuse(path, "has a table fts that is no text index")
    if re.search(r"\bcontent\s*=|\bcontent_rowid\s*=", made[1], re.IGNORECASE):
        raise refuse(path, "has a text index over other tables, which DigUp never makes")
    schema = connection.execute("PRAGMA user_version").fetchone()[0]
    if schema == KNOWN_SCHEMA and TOKENIZER not in made[1].replace("''", "'"):
        raise refuse(path, "splits its texts into words in another way than DigUp", _MIGRATE)


def _check_integrity(connection: sqlite3.Connection, path: Path) -> None:
    answer = as_text(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if answer != "ok":
        raise refuse(path, f"is damaged: {answer.splitlines()[-1][:200]}")


def _check_rows(connection: sqlite3.Connection, path: Path, *, is_code: bool) -> None:
    """A new code index may still be empty; an empty main index went wrong or came too early."""
    files = connection.execute("SELECT count(*) FROM files").fetchone()[0]
    if not files and not is_code:
        raise refuse(path, "knows no files yet", "Wait until DigUp has looked through its folders.")
    segments = connection.execute("SELECT count(*) FROM segments").fetchone()[0]
    if files and not segments:
        raise refuse(path, f"knows {files} files and nothing about them")


def try_queries(connection: sqlite3.Connection) -> None:
    """One query of each kind, so that what is damaged fails here and not under a question."""
    for row in connection.execute(f"SELECT {FILE_COLUMNS} FROM files f LIMIT 3"):  # noqa: S608 - constants
        file_of(row)
    passages = f"SELECT {PASSAGE_COLUMNS} FROM {PASSAGES} LIMIT 3"  # noqa: S608 - constants
    for row in connection.execute(passages).fetchall():
        words = re.findall(r"\w+", passage_of(row).text or "")[:1]
        match = '"' + (words[0] if words else "a") + '"'
        # In order of bm25 it would score every row that holds the word: a second, if that is in most texts.
        marking = f"SELECT {BM25}, snippet(fts, 1, '«', '»', '…', 12) FROM fts WHERE fts MATCH ? LIMIT 1"  # noqa: S608 - constants
        connection.execute(marking, (match,)).fetchall()
    connection.execute(f"SELECT s.vec FROM segments s WHERE {IS_VECTOR} LIMIT 3").fetchall()  # noqa: S608 - constants only

"""The keyword step in the plainest way, with DigUp's own statement: what the fast one is compared with."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from hermes_digup.index import Database

SHOWN, LIMIT, FILES = 20, 1000, 100
ROWS = """
    SELECT s.file, s.id, snippet(fts, 1, '«', '»', '…', 12), fts.original
    FROM fts JOIN segments s ON s.id = fts.rowid
    WHERE fts MATCH ? ORDER BY bm25(fts, 3.0, 1.0) LIMIT 1000
"""
SCORES = """
    SELECT rowid, bm25(fts, 3.0, 1.0) AS score FROM fts WHERE fts MATCH ? ORDER BY score, rowid LIMIT 1000
"""


class Answer(NamedTuple):
    """Rows in order, the files each word is in, the snippets of the first rows."""

    rows: list[tuple[int, int]]
    covered: list[set[int]]
    snippets: list[str]


def plainly(database: sqlite3.Connection, patterns: Sequence[str]) -> Answer:
    """Everything at once, as DigUp asks for it."""
    found = database.execute(ROWS, (" OR ".join(patterns),)).fetchall()
    files = list(dict.fromkeys(row[0] for row in found))[:FILES]
    covering = (
        "SELECT DISTINCT s.file FROM fts JOIN segments s ON s.id = fts.rowid "
        f"WHERE fts MATCH ? AND s.file IN ({','.join('?' * len(files))})"
    )
    covered = [{file for (file,) in database.execute(covering, (each, *files))} for each in patterns]
    return Answer([row[:2] for row in found], covered, [row[2] for row in found[:SHOWN]])


def quickly(database: Database, patterns: Sequence[str]) -> Answer:
    """The same from the package; from a database just opened, nothing of former questions is kept."""
    found = database.keyword_rows(patterns, LIMIT, None)
    files = list(dict.fromkeys(row.file for row in found))[:FILES]
    # As ranking does it: a file found by one expression alone holds that.
    covered = [set(files)] if len(patterns) == 1 else [*map(set, database.files_matching(patterns, files))]
    shown = [row.segment for row in found[:SHOWN]]
    marked = database.marked(patterns, shown)
    snippets = [marked[segment] for segment in shown]
    return Answer([(row.file, row.segment) for row in found], covered, snippets)

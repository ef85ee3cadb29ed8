"""The best rows of the text index for some words, without looking at rows that cannot be among them.

Same rows, scores and order as one statement over all that match: SQLite computes every score that counts.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hermes_digup.index.door import as_text, askable
from hermes_digup.records import KeywordRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What bm25 of FTS5 gives a phrase is below (k1 + 1) * idf, with k1 = 1.2, however often it occurs.
_MOST_OF_IDF: Final = 2.2
_LEAST_IDF: Final = 1e-6
_ROUNDING: Final = 1e-9
_WORTH: Final = 0.5  # rare words that match more than this share of all are no short cut

_SCORED: Final = "SELECT rowid AS id, bm25(fts, 3.0, 1.0) AS score FROM fts WHERE fts MATCH :match"
# FTS5 must walk its own lists once: with a bare `rowid IN` it would start afresh for every number.
_INSIDE: Final = """
    AND +rowid IN (SELECT id FROM segments WHERE file IN (SELECT value FROM json_each(:inside)))
"""
_AMONG: Final = " AND +rowid IN (SELECT value FROM json_each(:among))"
_BEST: Final = """
    SELECT f.id, k.id, f.kind FROM ({scored} ORDER BY score, id LIMIT :limit) k
    JOIN segments s ON s.id = k.id JOIN files f ON f.id = s.file ORDER BY k.score, k.id
"""
_SCORES: Final = "SELECT id, score FROM ({scored})"
_SEGMENTS: Final = """
    SELECT group_concat(id), group_concat(file) FROM segments
    WHERE file IN (SELECT value FROM json_each(?))
"""


def bundle(numbers: Collection[int]) -> str:
    """Numbers as one parameter, so that the SQL stays the same and prepared."""
    return json.dumps(list(numbers))


def unbundled(text: str | None) -> NDArray[np.int64]:
    """Numbers that SQLite put into one text: a row at a time costs Python far more than SQLite."""
    return np.fromstring(text, np.int64, sep=",") if text else np.empty(0, np.int64)


class Sought(NamedTuple):
    """FTS expressions looked for: how often each matches, of how many rows, in which files (None: all)."""

    patterns: Sequence[str]
    found: Sequence[int]
    texts: int
    inside: str | None


def best_rows(connection: sqlite3.Connection, sought: Sought, limit: int) -> list[KeywordRow]:
    """Rows that match any of the FTS expressions, best bm25 first, then by number.

    Raises: sqlite3.Error.
    """
    patterns, inside = sought.patterns, sought.inside
    among = _candidates(connection, sought, limit)
    scored = _SCORED + (_INSIDE if inside is not None else "") + (_AMONG if among is not None else "")
    parameters = {"match": _any_of(patterns), "limit": limit, "inside": inside, "among": among}
    with closing(connection.execute(_BEST.format(scored=scored), parameters)) as cursor:
        return [KeywordRow(file, segment, as_text(kind)) for file, segment, kind in cursor]


def files_with(
    connection: sqlite3.Connection, rows: Sequence[NDArray[np.int64]], files: Collection[int]
) -> list[set[int]]:
    """For each list of rows, ascending, which of these files have any of them. Raises: sqlite3.Error."""
    numbers, whose = map(unbundled, connection.execute(_SEGMENTS, (bundle(files),)).fetchone())
    return [set(whose[_are_in(numbers, each)].tolist()) for each in rows]


def _are_in(numbers: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(ascending):
        return np.zeros(len(numbers), np.bool_)
    places = np.searchsorted(ascending, numbers)
    found: NDArray[np.bool_] = ascending[np.minimum(places, len(ascending) - 1)] == numbers
    return found


def _candidates(connection: sqlite3.Connection, sought: Sought, limit: int) -> str | None:
    """The rows that can be among the best, found by the rarer words alone; None: any can (MaxScore)."""
    found = sought.found
    order = sorted(range(len(found)), key=found.__getitem__)
    most = [_MOST_OF_IDF * _idf(found[place], sought.texts) for place in order]
    rows = 0
    for count in range(1, len(order)):
        rows += found[order[count - 1]]
        rest = sum(most[count:]) + _ROUNDING
        if rows > _WORTH * sum(found):
            break
        if rows < limit or rest >= sum(most[:count]):
            continue
        # In the order of the query, in which SQLite adds them up.
        rare = [sought.patterns[place] for place in sorted(order[:count])]
        among = _close_to_best(connection, sought._replace(patterns=rare), limit, rest)
        if among is not None:
            return bundle(among)
    return None


def _close_to_best(connection: sqlite3.Connection, rare: Sought, limit: int, rest: float) -> list[int] | None:
    """Rows that other words, which add less than `rest`, can bring among the best; None: perhaps any."""
    scored = _SCORED + (_INSIDE if rare.inside is not None else "")
    parameters = {"match": _any_of(rare.patterns), "inside": rare.inside}
    scores = connection.execute(_SCORES.format(scored=scored), parameters).fetchall()
    if len(scores) < limit:
        return None
    last = sorted(score for _, score in scores)[limit - 1]  # best is lowest, and none is above 0
    if -last <= rest:
        return None
    return [number for number, score in scores if score <= last + rest]


def _idf(found: int, texts: int) -> float:
    return max(math.log(max((texts - found + 0.5) / (found + 0.5), _LEAST_IDF)), _LEAST_IDF)


def _any_of(patterns: Sequence[str]) -> str:
    return askable(" OR ".join(patterns))

"""The best rows of the text index for some words, without looking at rows that cannot be among them.

Same rows, scores and order as one statement over all that match: SQLite computes every score that counts.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hermes_digup.index.bundles import bundle
from hermes_digup.index.door import askable
from hermes_digup.index.postings import BM25
from hermes_digup.index.sums import scores_add_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What bm25 of FTS5 gives a phrase is below (k1 + 1) * idf, with k1 = 1.2, however often it occurs.
_MOST_OF_IDF: Final = 2.2
_LEAST_IDF: Final = 1e-6
_ROUNDING: Final = 1e-9
_USUAL: Final = 0.4  # of the most that a row can score
_WORTH: Final = 0.7  # of all rows: scoring more than this share by number is slower than scoring all

# FTS5 must walk its own lists once: with a bare `rowid IN` it would start afresh for every number.
_BEST: Final = f"""
    SELECT {BM25} AS score, rowid AS id FROM fts WHERE fts MATCH :match {{among}}
    ORDER BY score, id LIMIT :limit
"""  # noqa: S608 - a constant
_AMONG: Final = "AND +rowid IN (SELECT value FROM json_each(:among))"
_SNIPPETS: Final = """
    SELECT rowid, snippet(fts, 1, '«', '»', '…', 12) FROM fts
    WHERE fts MATCH ? AND {rowid} IN (SELECT value FROM json_each(?))
"""
_ROWS_FOR_A_START: Final = 400  # that FTS5 walks in the time it takes to start afresh for one expression


class Sought(NamedTuple):
    """FTS expressions looked for, with the rows that match each, ascending; how many texts there are in all.

    `scores`: of these rows for the expression alone; None: not known. `inside`: which rows of some may be
    found; None: all.
    """

    patterns: Sequence[str]
    rows: Sequence[NDArray[np.int64]]
    scores: Sequence[NDArray[np.float64]] | None
    texts: int
    inside: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None


def best_rows(connection: sqlite3.Connection, sought: Sought, limit: int) -> list[int]:
    """Rows that match any of the FTS expressions, best bm25 first, then by number.

    Where scores are known, they are added up, which is what FTS5 does. Else it scores the rows that could
    score most, then those others that can still be among the best. Raises: sqlite3.Error.
    """
    if sought.scores is not None:
        return _best_known(connection, sought, sought.scores, limit)
    if sought.inside is None and sum(map(len, sought.rows)) <= limit:
        return [number for _, number in _best(connection, sought.patterns, limit)]
    rows = matching = _united(sought.rows)
    most = _most(sought, matching)
    if sought.inside is not None:
        inside = sought.inside(matching)
        rows, most = matching[inside], most[inside]

    def best(wanted: NDArray[np.bool_]) -> list[tuple[float, int]]:
        if sought.inside is None and np.count_nonzero(wanted) > _WORTH * len(matching):
            return _best(connection, sought.patterns, limit)
        return _best(connection, sought.patterns, limit, bundle(rows[wanted].tolist()))

    first = _promising(most, limit)
    found = best(first)
    if len(found) == limit:
        last = -found[-1][0]  # best is lowest, and none is above 0
        more = ~first & (most > last - _ROUNDING)
        if more.any():
            found = sorted({*found, *best(more)})[:limit]
    return [number for _, number in found]


def _best_known(
    connection: sqlite3.Connection, sought: Sought, scores: Sequence[NDArray[np.float64]], limit: int
) -> list[int]:
    rows = _united(sought.rows)
    total = _sums(rows, sought.rows, scores)
    if sought.inside is not None:
        inside = sought.inside(rows)
        rows, total = rows[inside], total[inside]
    if len(total) > limit:
        leading = total <= np.partition(total, limit - 1)[limit - 1] + _ROUNDING
        rows, total = rows[leading], total[leading]
    if not scores_add_up():
        return [number for _, number in _best(connection, sought.patterns, limit, bundle(rows.tolist()))]
    best: list[int] = rows[np.argsort(total, kind="stable")][:limit].tolist()
    return best


def _best(
    connection: sqlite3.Connection, patterns: Sequence[str], limit: int, among: str | None = None
) -> list[tuple[float, int]]:
    sql = _BEST.format(among="" if among is None else _AMONG)
    parameters = {"match": _any_of(patterns), "limit": limit, "among": among}
    return connection.execute(sql, parameters).fetchall()


def snippets(
    connection: sqlite3.Connection, patterns: Sequence[str], found: int, rows: Collection[int]
) -> dict[int, object]:
    """FTS5's own snippets of those of the rows that match; `found`: how often the expressions match in all.

    Raises: sqlite3.Error.
    """
    walk = found < _ROWS_FOR_A_START * len(patterns) * len(rows)
    sql = _SNIPPETS.format(rowid="+rowid" if walk else "rowid")
    return dict(connection.execute(sql, (_any_of(patterns), bundle(rows))).fetchall())


def _united(rows: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The numbers that are in any, ascending, each once."""
    every = np.sort(np.concatenate(rows), kind="stable")  # fast for a few ascending stretches
    united: NDArray[np.int64] = every[np.append(True, every[1:] != every[:-1])[: len(every)]]
    return united


def _most(sought: Sought, matching: NDArray[np.int64]) -> NDArray[np.float64]:
    """What each row scores less than, from which expressions it matches."""
    return _sums(
        matching, sought.rows, [_MOST_OF_IDF * _idf(len(rows), sought.texts) for rows in sought.rows]
    )


def _sums(
    all_rows: NDArray[np.int64],
    rows: Sequence[NDArray[np.int64]],
    values: Sequence[NDArray[np.float64] | float],
) -> NDArray[np.float64]:
    """For each of all rows, the sum of the values it has in those lists of rows that it is in."""
    sums = np.zeros(len(all_rows))
    for some, value in zip(rows, values, strict=True):
        sums[np.searchsorted(all_rows, some)] += value
    return sums


def _promising(most: NDArray[np.float64], limit: int) -> NDArray[np.bool_]:
    """Which rows to score first, as many as are wanted or more: those whose usual score is likely enough.

    A word that occurs once in a text of average length counts for less than half of what it could.
    """
    if len(most) <= limit:
        return np.ones(len(most), np.bool_)
    promising: NDArray[np.bool_] = most >= _USUAL * np.partition(most, -limit)[-limit]
    return promising


def _idf(found: int, texts: int) -> float:
    return max(math.log(max((texts - found + 0.5) / (found + 0.5), _LEAST_IDF)), _LEAST_IDF)


def _any_of(patterns: Sequence[str]) -> str:
    return askable(" OR ".join(patterns))

"""What the text index says of an expression: which rows hold it, and how each scores for it alone.

Kept while there is little of it: an agent asks again in other words, of which some are the same.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hermes_digup.index.bundles import unbundled
from hermes_digup.index.door import askable

if TYPE_CHECKING:
    from numpy.typing import NDArray

BM25: Final = "coalesce(bm25(fts, 3.0, 1.0), 0.0)"  # none where lengths of texts are damaged

_KEPT_BYTES: Final = 8 << 20  # of rows, and as much of scores
_SCORE_BYTES: Final = 8
_ENTRY_BYTES: Final = 512  # that keeping an expression takes besides: words that match nothing count, too
_FEW_ROWS: Final = 1000  # are scored as quickly as looked up
_ROWS: Final = "SELECT group_concat(rowid) FROM fts WHERE fts MATCH ?"
_SCORES: Final = f"SELECT {BM25} FROM fts WHERE fts MATCH ? ORDER BY rowid"  # noqa: S608 - a constant


class Postings:
    """The rows of expressions, and their scores. Threads: safe; a connection is the caller's own.

    Raises, everywhere: sqlite3.Error.
    """

    def __init__(self, kept_bytes: int = _KEPT_BYTES) -> None:
        self._rows, self._scores = _Kept(kept_bytes), _Kept(kept_bytes)
        self._most_bytes = kept_bytes * 3 // 4  # of scores for one question: others have room, too

    def of(self, connection: sqlite3.Connection, expression: str) -> NDArray[np.int64]:
        """The numbers of all rows that match, ascending."""
        rows = self._rows.get(expression)
        if rows is None:
            rows = unbundled(connection.execute(_ROWS, (askable(expression),)).fetchone()[0])
            self._rows.put(expression, rows)
        return rows

    def scores(
        self, connection: sqlite3.Connection, expressions: Sequence[str]
    ) -> list[NDArray[np.float64]] | None:
        """For each expression the scores of its rows, in the same order; None when that would take long."""
        known = [self._scores.get(each) for each in expressions]
        new = [each for each, scores in zip(expressions, known, strict=True) if scores is None]
        if len(new) == len(known) or sum(len(self.of(connection, each)) for each in new) > _FEW_ROWS:
            return None
        return [
            self.score(connection, each) if scores is None else scores
            for each, scores in zip(expressions, known, strict=True)
        ]

    def score(self, connection: sqlite3.Connection, expression: str) -> NDArray[np.float64]:
        """Has SQLite score all rows of an expression, which takes it a few microseconds each."""
        cursor = connection.execute(_SCORES, (askable(expression),))
        scores = np.fromiter((score for (score,) in cursor), np.float64)
        self._scores.put(expression, scores)
        return scores

    def worth_scoring(self, expressions: Sequence[str]) -> list[str]:
        """Those that were asked for before and match many rows, whose scores are not known yet.

        Not one of them, if there is no room for the scores of all.
        """
        found = {each: self._rows.get(each) for each in expressions}
        lengths = {each: len(rows) for each, rows in found.items() if rows is not None}
        if _SCORE_BYTES * sum(lengths.values()) > self._most_bytes:
            return []
        return [
            each for each, length in lengths.items() if length > _FEW_ROWS and self._scores.get(each) is None
        ]


class _Kept:
    """Arrays by expression: those last used, as many as fit into some bytes. Threads: safe."""

    def __init__(self, kept_bytes: int) -> None:
        self._left = kept_bytes
        self._known: OrderedDict[str, NDArray[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, expression: str) -> NDArray[Any] | None:
        with self._lock:
            found = self._known.get(expression)
            if found is not None:
                self._known.move_to_end(expression)
            return found

    def put(self, expression: str, values: NDArray[Any]) -> None:
        with self._lock:
            if expression in self._known:
                return
            self._known[expression] = values
            self._left -= _taken(expression, values)
            while self._left < 0:
                self._left += _taken(*self._known.popitem(last=False))


def _taken(expression: str, values: NDArray[Any]) -> int:
    return values.nbytes + sys.getsizeof(expression) + _ENTRY_BYTES

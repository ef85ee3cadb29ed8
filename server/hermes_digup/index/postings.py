"""Which rows of the text index hold an expression: asked for once, then kept while there is little of it.

An agent asks again in other words, of which some are the same.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from hermes_digup.index.bundles import unbundled
from hermes_digup.index.door import askable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KEPT_BYTES: Final = 8 << 20
_ROWS: Final = "SELECT group_concat(rowid) FROM fts WHERE fts MATCH ?"


class Postings:
    """The rows of expressions, in order. Threads: safe; a connection is the caller's own."""

    def __init__(self, kept_bytes: int = _KEPT_BYTES) -> None:
        self._left = kept_bytes
        self._known: OrderedDict[str, NDArray[np.int64]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, connection: sqlite3.Connection, expression: str) -> NDArray[np.int64]:
        """The numbers of all rows that match, ascending. Raises: sqlite3.Error."""
        with self._lock:
            rows = self._known.get(expression)
            if rows is not None:
                self._known.move_to_end(expression)
        if rows is None:
            text = connection.execute(_ROWS, (askable(expression),)).fetchone()[0]
            rows = unbundled(text)
            self._keep(expression, rows)
        return rows

    def _keep(self, expression: str, rows: NDArray[np.int64]) -> None:
        with self._lock:
            if expression in self._known:
                return
            self._known[expression] = rows
            self._left -= rows.nbytes
            while self._left < 0:
                self._left += self._known.popitem(last=False)[1].nbytes

"""Which file each segment belongs to, for all segments at once.

Read when words are looked for the first time: asking for each segment would take as long as the search.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from hermes_digup.index.bundles import unbundled
from hermes_digup.records import KeywordRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The index on segments(file) holds both, mostly in order of file. Whatever a file may be, a cast is a number.
_ALL: Final = """
    SELECT group_concat(id), group_concat(CAST(file AS INTEGER)) FROM segments WHERE file IS NOT NULL
"""


class Owners:
    """The files of all segments. Threads: safe, as it never changes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Reads them. Raises: sqlite3.Error."""
        ids, files = connection.execute(_ALL).fetchone()
        self._segments, owners = unbundled(ids), unbundled(files)
        del ids, files  # as large as what was made of them
        if (owners[1:] < owners[:-1]).any():
            by_file = np.argsort(owners, kind="stable")
            self._segments, owners = self._segments[by_file], owners[by_file]
        self._order = np.argsort(self._segments, kind="stable")
        self._starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])
        self._files = owners[self._starts]

    def of(self, segments: Sequence[int]) -> list[KeywordRow]:
        """The segments with their files, in this order; without segments that are none."""
        wanted = np.array(segments, np.int64)
        files, known = self._of(wanted)
        return list(map(KeywordRow, files[known].tolist(), wanted[known].tolist()))

    def are_in(self, files: NDArray[np.int64], segments: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the segments belong to any of the files, which are in ascending order."""
        owners, known = self._of(segments)
        return known & _found(owners, files)

    def with_any(self, rows: Sequence[NDArray[np.int64]], files: Collection[int]) -> list[set[int]]:
        """For each list of segments, ascending, which of these files have any of them."""
        asked = np.fromiter(files, np.int64, len(files))
        asked = asked[_found(asked, self._files)]
        places = np.searchsorted(self._files, asked)
        bounds = np.append(self._starts, len(self._segments))
        parts = [self._segments[bounds[place] : bounds[place + 1]] for place in places]
        segments = np.concatenate([np.empty(0, np.int64), *parts])
        whose = np.repeat(asked, [len(part) for part in parts])
        return [set(whose[_found(segments, each)].tolist()) for each in rows]

    def _of(self, segments: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The file of each segment, and whether it has one."""
        if not len(self._segments):
            return segments, np.zeros(len(segments), np.bool_)
        places = np.searchsorted(self._segments, segments, sorter=self._order)
        places = self._order[np.minimum(places, len(self._order) - 1)]
        files = self._files[np.searchsorted(self._starts, places, "right") - 1]
        return files, self._segments[places] == segments


def _found(wanted: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the numbers are among others."""
    if not len(ascending):
        return np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[places] == wanted
    return found

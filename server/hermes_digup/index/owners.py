"""Which file each segment belongs to, for all segments at once.

Asking SQLite for each segment would take as long as the search. Packed at publishing, beside the vectors.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hermes_digup.index.bundles import unbundled
from hermes_digup.records import KeywordRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The index on segments(file) holds both, mostly in order of file. Whatever a file may be, a cast is a number.
_ALL: Final = """
    SELECT group_concat(id), group_concat(CAST(file AS INTEGER)) FROM segments WHERE file IS NOT NULL
"""


class Owners(NamedTuple):
    """The files of all segments. Shapes: all (n,).

    `segments` and `files` are in order of file; `order` is the places of these in order of segment.
    """

    segments: NDArray[np.int64]
    files: NDArray[np.int64]
    order: NDArray[np.int64]

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
        starts, ends = (np.searchsorted(self.files, asked, side) for side in ("left", "right"))
        parts = [self.segments[start:end] for start, end in zip(starts, ends, strict=True)]
        segments = np.concatenate([np.empty(0, np.int64), *parts])
        whose = np.repeat(asked, ends - starts)
        return [set(whose[_found(segments, each)].tolist()) for each in rows]

    def _of(self, segments: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The file of each segment, and whether it has one."""
        if not len(self.segments):
            return segments, np.zeros(len(segments), np.bool_)
        places = np.searchsorted(self.segments, segments, sorter=self.order)
        places = self.order[np.minimum(places, len(self.order) - 1)]
        return self.files[places], self.segments[places] == segments


def read_owners(connection: sqlite3.Connection) -> Owners:
    """The files of all segments of a database.

    Raises: sqlite3.Error.
    """
    ids, numbers = connection.execute(_ALL).fetchone()
    segments, files = unbundled(ids), unbundled(numbers)
    del ids, numbers  # as large as what was made of them
    if (files[1:] < files[:-1]).any():
        by_file = np.argsort(files, kind="stable")
        segments, files = segments[by_file], files[by_file]
    return Owners(segments, files, np.argsort(segments, kind="stable"))


def _found(wanted: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the numbers are among others."""
    if not len(ascending):
        return np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[places] == wanted
    return found

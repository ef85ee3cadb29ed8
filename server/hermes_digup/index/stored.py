"""What an opened database answers from: its packed file, mapped; or its own rows, where none fits."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hermes_digup.index.owners import Owners, read_owners
from hermes_digup.index.packed import Packed, UnfitError, map_packed
from hermes_digup.index.vectors import read_vectors
from hermes_digup.records import VectorRows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class StoredVectors(NamedTuple):
    """The vectors in use, and the owners of all segments. `source`: "packed" or "rows".

    Shapes: matrix (n, 768). `warnings` says what is not as it should be. `packed` is there as long as the
    packed file may be used.
    """

    source: str
    rows: VectorRows
    matrix: NDArray[np.float16]
    owners: Owners
    warnings: tuple[str, ...]
    packed: Packed | None = None


def stored_vectors(path: Path, packed: Path | None, connection: sqlite3.Connection) -> StoredVectors:
    """The packed vectors of a database if they fit, else the vectors of its rows.

    Raises: sqlite3.Error.
    """
    if packed is None:
        return _from_rows(path, connection)
    try:
        mapped = map_packed(packed, path)
    except UnfitError as error:
        return _from_rows(path, connection, _not_used(packed, path, str(error)))
    warnings = _passed_over(path, mapped.passed_over)
    return StoredVectors("packed", mapped.rows, mapped.matrix, mapped.owners, warnings, mapped)


def proved(
    vectors: StoredVectors,
    path: Path,
    packed: Path,
    connection: sqlite3.Connection,
    stopped: Callable[[], bool],
) -> StoredVectors:
    """The same vectors once all of them were found whole; those of the rows when they are not.

    Raises: sqlite3.Error.
    """
    if vectors.packed is None or vectors.packed.is_whole(stopped):
        return vectors
    return _from_rows(path, connection, _not_used(packed, path, "its checksum is wrong"))


def _from_rows(path: Path, connection: sqlite3.Connection, *warnings: str) -> StoredVectors:
    rows, matrix, passed_over = read_vectors(connection)
    said = (*warnings, *_passed_over(path, passed_over))
    return StoredVectors("rows", rows, matrix, read_owners(connection), said)


def _not_used(packed: Path, path: Path, why: str) -> str:
    return f"{packed.name} is not used: {why}; the vectors were read from {path.name}"


def _passed_over(path: Path, count: int) -> tuple[str, ...]:
    if not count:
        return ()
    return (f"{count} vectors in {path.name} hold no finite numbers and are passed over",)

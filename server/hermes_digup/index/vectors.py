"""The vectors of a database, read row by row, with what ranking must know about each.

Done once at publishing, to pack them; done by a server only when no packed file fits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hermes_digup.index.door import as_text
from hermes_digup.records import DIMENSIONS, KINDS, MODALITIES, VectorRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

VECTOR_BYTES: Final = DIMENSIONS * 2
COLUMNS: Final = ("segment", "file", "place", "pages", "file_kind", "modality", "is_chunk")
OTHER_KIND: Final = -1

_KIND_NUMBERS: Final = {kind: number for number, kind in enumerate((*KINDS, "code"))}
_MODALITY_NUMBERS: Final = {modality: number for number, modality in enumerate(MODALITIES)}
_BATCH: Final = 1024
_INT32: Final = np.iinfo(np.int32)

# A JSON fault in one row's info would fail DigUp's own query as a whole. Ours takes that row as having no
# pages.
GOOD_INFO: Final = "(typeof(f.info) = 'text' AND json_valid(f.info))"
IS_VECTOR: Final = f"(typeof(s.vec) = 'blob' AND length(s.vec) = {VECTOR_BYTES})"
_ROWS: Final = f"FROM segments s CROSS JOIN files f ON f.id = s.file WHERE {IS_VECTOR}"
_COUNT: Final = f"SELECT count(*) {_ROWS}"
# The index on segments(file) gives this order without sorting the vectors.
_READ: Final = f"""
    SELECT s.id, f.id, f.kind, s.modality, s.kind = 'chunk', CAST(coalesce(s.loc, 0) AS INTEGER),
           CASE WHEN f.kind = 'pdf' AND {GOOD_INFO} THEN CAST(json_extract(f.info, '$.pages') AS INTEGER) END,
           s.vec
    {_ROWS} ORDER BY s.file, s.id
"""


class Batch(NamedTuple):
    """Some vectors with their columns, in order of (file, segment), and how many between them were unusable.

    Shapes: columns (k, 7), see `COLUMNS`; values (k, 768), finite.
    """

    columns: NDArray[np.int64]
    values: NDArray[np.float16]
    passed_over: int


def batches(connection: sqlite3.Connection) -> Iterator[Batch]:
    """All vectors of the right length that hold finite numbers.

    Raises: sqlite3.Error.
    """
    cursor = connection.execute(_READ)
    while rows := cursor.fetchmany(_BATCH):
        columns = np.array([_numbers(*row[:-1]) for row in rows], np.int64)
        values = np.frombuffer(b"".join(row[-1] for row in rows), "<f2").reshape(-1, DIMENSIONS)
        usable = np.isfinite(values).all(axis=1)
        yield Batch(columns[usable], values[usable].astype(np.float16, copy=False), int((~usable).sum()))


def rows_from(columns: Mapping[str, NDArray[Any]]) -> VectorRows:
    """Columns as ranking wants them, copied only where their types differ.

    Shapes: all (n,), in order of (file, segment).
    """
    file = columns["file"]
    return VectorRows(
        segment=columns["segment"],
        file=file,
        first=np.flatnonzero(np.append(True, file[1:] != file[:-1])[: len(file)]).astype(np.int64),
        file_kind=columns["file_kind"].astype(np.int8, copy=False),
        modality=columns["modality"].astype(np.int8, copy=False),
        is_chunk=columns["is_chunk"].astype(np.bool_, copy=False),
        place=columns["place"].astype(np.int32, copy=False),
        pages=columns["pages"].astype(np.int32, copy=False),
    )


def by_name(table: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """The columns of a table by their names. Shapes: table (n, 7)."""
    return {name: np.ascontiguousarray(table[:, place]) for place, name in enumerate(COLUMNS)}


def read_vectors(connection: sqlite3.Connection) -> tuple[VectorRows, NDArray[np.float16], int]:
    """All usable vectors in memory, and how many were passed over because they hold no finite numbers.

    Raises: sqlite3.Error.
    """
    count = connection.execute(_COUNT).fetchone()[0]
    matrix = np.empty((count, DIMENSIONS), np.float16)
    tables, filled, passed_over = [np.empty((0, len(COLUMNS)), np.int64)], 0, 0
    for batch in batches(connection):
        matrix[filled : filled + len(batch.values)] = batch.values
        filled += len(batch.values)
        passed_over += batch.passed_over
        tables.append(batch.columns)
    return rows_from(by_name(np.concatenate(tables))), matrix[:filled], passed_over


def _numbers(
    segment: int, file: int, file_kind: object, modality: object, *rest: int | None
) -> tuple[int, ...]:  # in the order of COLUMNS
    is_chunk, place, pages = rest
    return (
        segment,
        file,
        _int32(place or 0),
        _int32(pages or 0),
        _KIND_NUMBERS.get(as_text(file_kind), OTHER_KIND),
        _MODALITY_NUMBERS.get(as_text(modality), 0),
        is_chunk or 0,
    )


def _int32(value: int) -> int:
    return min(max(value, int(_INT32.min)), int(_INT32.max))

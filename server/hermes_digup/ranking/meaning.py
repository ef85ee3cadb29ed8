"""How far each stored vector stands out for a query, on this index's own scale.

The scale comes from the whole index, whatever the filters, so a filter never changes a z.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hermes_digup.records import KINDS, MODALITIES, VectorRows

LEAST_ROWS_FOR_AN_AVERAGE: Final = 20
LEAST_DEVIATION: Final = 0.02
LONG_PDF_PAGES: Final = 50
FIRST_PDF_PAGES: Final = 30
FIRST_CHUNKS: Final = 40

_PDF: Final = KINDS.index("pdf")


class BestRow(NamedTuple):
    """The vector of a file that stands out most."""

    z: float
    cosine: float
    segment: int


def sets_scale(rows: VectorRows) -> NDArray[np.bool_]:
    """Which rows set the scale: all but the later part of long files, so that one long file cannot shift it.

    Shapes: (n,). The rule looks at a row's place in its file, not at when the row was added.
    """
    pdf = rows.file_kind == _PDF
    later_page = ~rows.is_chunk & (rows.pages > LONG_PDF_PAGES) & (rows.place > FIRST_PDF_PAGES)
    later_chunk = rows.is_chunk & (rows.place > FIRST_CHUNKS)
    return ~np.where(pdf, later_page, later_chunk)


def standout(
    cosines: NDArray[np.float32], modality: NDArray[np.int8], scale: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """How far each cosine stands above its modality's average, in deviations of the whole index.

    Shapes: all (n,). `modality` is a place in MODALITIES; `scale` says which rows set the scale.
    """
    values = cosines.astype(np.float64)
    averages = _averages(values[scale], modality[scale])
    values -= averages[modality]
    setting = values[scale]
    middle = _mean(setting)
    deviation = max(float(np.sqrt(_mean((setting - middle) ** 2))), LEAST_DEVIATION)
    values -= middle
    values /= deviation
    return values


def _averages(values: NDArray[np.float64], modality: NDArray[np.int8]) -> NDArray[np.float64]:
    """The average cosine of each modality; of everything for a modality with few rows."""
    averages = np.full(len(MODALITIES), _mean(values))
    for number in range(len(MODALITIES)):
        mine = values[modality == number]
        if len(mine) >= LEAST_ROWS_FOR_AN_AVERAGE:
            averages[number] = _mean(mine)
    return averages


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.sum()) / max(len(values), 1)


def best_rows(rows: VectorRows, z: NDArray[np.float64]) -> NDArray[np.int64]:
    """The row of each file that stands out most; of equal ones that with the lowest segment number.

    Shapes: z (n,); result (m,), in order of file number.
    """
    if not len(rows.first):
        return np.empty(0, np.int64)
    sizes = np.diff(np.append(rows.first, len(z)))
    peak = np.repeat(np.maximum.reduceat(z, rows.first), sizes)
    at_peak = np.flatnonzero(z == peak)
    whose = np.repeat(np.arange(len(rows.first)), sizes)[at_peak]
    first_of_each = np.append(True, whose[1:] != whose[:-1])
    return np.asarray(at_peak[first_of_each], np.int64)

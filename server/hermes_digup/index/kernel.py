"""Dot products of one query with every stored vector, exact to float32, at the speed of reading the rows.

NumKong multiplies half-precision rows without widening them; where its wheel is missing or fails the
self-test, numpy does, widening by bits. Each row is computed by itself, so equal vectors get equal scores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hermes_digup.records import DIMENSIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hermes_digup.records import Vector

_BLOCK_ROWS: Final = 256  # stays in the cache between the two passes
_LOW_SCALE: Final = 4096.0  # keeps the low part of the query out of the subnormal range
_TEST_ROWS: Final = 300
_TOLERANCE: Final = 5e-7


def cosines(matrix: NDArray[np.float16], query: Vector) -> NDArray[np.float32]:
    """The dot product of each row with the query.

    Shapes: matrix (n, 768) finite; query (768,) float32; result (n,).
    """
    return _fastest()(matrix, query)


def by_numkong(matrix: NDArray[np.float16], query: Vector) -> NDArray[np.float32]:
    """Two passes: with the query rounded to half precision, and with what that left out."""
    from numkong import dot  # an optional wheel

    high = query.astype(np.float16)
    low = ((query - high.astype(np.float32)) * np.float32(_LOW_SCALE)).astype(np.float16)
    out = np.empty(len(matrix), np.float32)
    for start in range(0, len(matrix), _BLOCK_ROWS):
        rows = matrix[start : start + _BLOCK_ROWS]
        out[start : start + len(rows)] = np.asarray(dot(rows, high)) + np.asarray(dot(rows, low)) / _LOW_SCALE
    return out


def by_numpy(matrix: NDArray[np.float16], query: Vector) -> NDArray[np.float32]:
    """Widens a block of rows by moving bits (numpy's own conversion is far slower), then multiplies."""
    out = np.empty(len(matrix), np.float32)
    for start in range(0, len(matrix), _BLOCK_ROWS):
        rows = matrix[start : start + _BLOCK_ROWS]
        out[start : start + len(rows)] = np.vecdot(_widened(rows), query)
    return out


def _widened(rows: NDArray[np.float16]) -> NDArray[np.float32]:
    """Finite half-precision numbers as float32: bits are moved, then scaled by the biases' difference."""
    bits = rows.view(np.uint16).astype(np.uint32)
    moved = ((bits & 0x7FFF) << 13) | ((bits & 0x8000) << 16)
    widened = moved.view(np.float32)
    widened *= np.float32(2.0**112)
    return widened


@cache
def _fastest() -> Callable[[NDArray[np.float16], Vector], NDArray[np.float32]]:
    try:
        return by_numkong if is_exact(by_numkong) else by_numpy
    except Exception:  # noqa: BLE001 - whatever a foreign wheel does here, numpy can do the work
        return by_numpy


def is_exact(kernel: Callable[[NDArray[np.float16], Vector], NDArray[np.float32]]) -> bool:
    """Whether a kernel agrees with float64 on a few hundred rows."""
    random = np.random.default_rng(0)
    rows = random.standard_normal((_TEST_ROWS, DIMENSIONS))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    query = random.standard_normal(DIMENSIONS)
    query = (query / np.linalg.norm(query)).astype(np.float32)
    expected = rows.astype(np.float64) @ query.astype(np.float64)
    return bool(np.abs(kernel(rows, query) - expected).max() < _TOLERANCE)

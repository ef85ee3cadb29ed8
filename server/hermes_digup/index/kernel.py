"""Dot products of one query with every stored vector, exact to float32, for a few times the cost of a read.

A block of half-precision rows is widened to float32 in the cache and multiplied there. NumKong widens with
the processor's own instruction; where its wheel is missing or fails the self-test, numpy moves the bits.
Each row is computed by itself, so equal vectors get equal scores; and both kernels give the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hermes_digup.records import DIMENSIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hermes_digup.records import Vector

_BLOCK_ROWS: Final = 384  # of all threads: they stay in the cache between widening and multiplying
_ROWS_FOR_THREADS: Final = 20_000
_THREADS: Final = max(min(3, (os.cpu_count() or 1) - 1), 1)
_TEST_ROWS: Final = 300
_TOLERANCE: Final = 5e-7
_FLOAT32_BITS: Final = np.int32(0x8FFFE000 - (1 << 32))  # of a shifted half: its sign, exponent and fraction


class Kernel(NamedTuple):
    """A way to widen finite half-precision rows: to float32 numbers that are `shrunk` times too small.

    `widen` writes them into the second array, of the same shape.
    """

    name: str
    widen: Callable[[NDArray[np.float16], NDArray[np.float32]], object]
    shrunk: float = 1.0


@cache
def _numkong() -> ModuleType:
    return import_module("numkong")  # an optional wheel


def _by_numkong(rows: NDArray[np.float16], room: NDArray[np.float32]) -> None:
    _numkong().astype(rows, "f32", out=room)


def _by_numpy(rows: NDArray[np.float16], room: NDArray[np.float32]) -> None:
    """Moves bits, as numpy's own conversion is far slower. The exponents keep their bias."""
    bits = room.view(np.int32)
    np.left_shift(rows.view(np.int16), 13, out=bits, dtype=np.int32)
    bits &= _FLOAT32_BITS


NUMKONG: Final = Kernel("numkong", _by_numkong)
NUMPY: Final = Kernel("numpy", _by_numpy, shrunk=2.0**112)


@cache
def chosen() -> Kernel:
    """The kernel of this machine; found out once."""
    try:
        return NUMKONG if is_exact(NUMKONG) else NUMPY
    except Exception:  # noqa: BLE001 - whatever a foreign wheel does here, numpy can do the work
        return NUMPY


def scored_by() -> str:
    """The name of the kernel of this machine."""
    return chosen().name


def cosines(
    matrix: NDArray[np.float16], query: Vector, *, kernel: Kernel | None = None, threads: int = _THREADS
) -> NDArray[np.float32]:
    """The dot product of each row with the query.

    Shapes: matrix (n, 768) finite; query (768,) float32; result (n,). More than 20,000 rows go over several
    threads, of which all searches together have three.
    """
    kernel = kernel or chosen()
    out = np.empty(len(matrix), np.float32)
    sought = query * np.float32(kernel.shrunk)

    parts = threads if len(matrix) > _ROWS_FOR_THREADS else 1
    block = _BLOCK_ROWS // parts

    def fill(first: int, end: int) -> None:
        room = np.empty((block, DIMENSIONS), np.float32)
        for start in range(first, end, block):
            stop = min(start + block, end)
            widened = room[: stop - start]
            kernel.widen(matrix[start:stop], widened)
            np.vecdot(widened, sought, out=out[start:stop])

    bounds = [len(matrix) * part // parts for part in range(parts + 1)]
    if parts == 1:
        fill(*bounds)
    else:
        list(_pool().map(fill, bounds[:-1], bounds[1:]))
    return out


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(3, thread_name_prefix="scores")


def is_exact(kernel: Kernel) -> bool:
    """Whether a kernel agrees with float64 on a few hundred rows."""
    random = np.random.default_rng(0)
    rows = random.standard_normal((_TEST_ROWS, DIMENSIONS))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    query = random.standard_normal(DIMENSIONS)
    query = (query / np.linalg.norm(query)).astype(np.float32)
    expected = np.vecdot(rows.astype(np.float64), query.astype(np.float64))
    return bool(np.abs(cosines(rows, query, kernel=kernel) - expected).max() < _TOLERANCE)

"""What a search took goes back to the system: a Pi has little memory, and several servers may run on it."""

from __future__ import annotations

import ctypes
from typing import Final

# Numbers of glibc's <malloc.h>.
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 256 << 10


def give_memory_back() -> None:
    """Tells glibc to keep one heap for all threads, and to return large blocks as soon as they are free.

    It would keep one for each thread that ever searched, as large as its largest search. To be called before
    threads start; does nothing where the C library has no such settings.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)

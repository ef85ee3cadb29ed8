"""One at a time: a lock on a file of ours that dies with its process, waited for within a bound."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_digup.errors import BusyError

_LOOK_EVERY_S = 0.1


@contextmanager
def locked(path: Path, *, wait_s: float, busy: str) -> Iterator[None]:
    """Holds the lock for the block.

    Raises: BusyError with the sentence `busy` when somebody holds it for longer than `wait_s`.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    give_up = time.monotonic() + wait_s
    try:
        while not _taken(descriptor):
            if time.monotonic() >= give_up:
                raise BusyError(busy, where=str(path), fix="Next: try again later.")
            time.sleep(_LOOK_EVERY_S)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

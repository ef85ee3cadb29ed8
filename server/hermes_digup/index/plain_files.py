"""Opening what somebody else may have put in place of a file: no link is followed, no pipe waited for."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def ordinary_file(path: Path) -> Iterator[int]:
    """A read-only descriptor of an ordinary file.

    Raises: OSError, also when something else is in its place.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file")
        yield descriptor
    finally:
        os.close(descriptor)

"""The few things publishing does to the file system, each in its safe form.

What arrived was written by somebody else: it is opened without following links or waiting for a pipe.
What others read is written beside, flushed and renamed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_digup.errors import DigupError, DiskFullError, RefusedCopyError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_HASH_BYTES = 1 << 20


@contextmanager
def opened_file(path: Path) -> Iterator[int]:
    """A read-only descriptor of a regular file.

    Raises: FileNotFoundError; RefusedCopyError when something else is in its place, or it can't be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = "is a link" if path.is_symlink() else f"cannot be opened ({error.strerror})"
        raise RefusedCopyError(f"{path.name} {why}; only a regular file is taken", where=str(path)) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RefusedCopyError(f"{path.name} is not a regular file", where=str(path))
        yield descriptor
    finally:
        os.close(descriptor)


def small_file(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    Raises: FileNotFoundError; RefusedCopyError when it is longer, or no regular file.
    """
    with opened_file(path) as descriptor:
        chunks, wanted = [], limit + 1
        while wanted and (chunk := os.read(descriptor, wanted)):
            chunks.append(chunk)
            wanted -= len(chunk)
    if not wanted:
        raise RefusedCopyError(f"{path.name} is larger than {limit:,} bytes", where=str(path))
    return b"".join(chunks)


def sha256_of(descriptor: int) -> tuple[int, str]:
    """Length and sha256 of what a descriptor reads, from its start."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    digest, size = hashlib.sha256(), 0
    while chunk := os.read(descriptor, _HASH_BYTES):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def write_durably(path: Path, data: bytes) -> None:
    """Puts a whole new file in place: readers see the old one or the new one. Its work name is fixed."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.touch(mode=0o600)
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    flush(path.parent)


def flush(path: Path) -> None:
    """Makes a file's bytes, or a folder's names, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Takes away a file, a link or a whole folder of ours; nothing there is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def our_faults(what: str, where: Path) -> Iterator[None]:
    """Turns the file system's faults into ours: `what` is the sentence's beginning.

    Raises: DiskFullError, DigupError.
    """
    try:
        yield
    except OSError as error:
        place = str(error.filename or where)
        if is_full(error):
            raise DiskFullError(f"{what}: the disk is full", where=place) from error
        raise DigupError(f"{what}: {error.strerror}", where=place) from error


def is_full(error: OSError) -> bool:
    """Whether a fault means that there is no room: disk, quota or file size."""
    return error.errno in _FULL

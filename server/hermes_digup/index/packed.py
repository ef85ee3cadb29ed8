"""The vectors of one database packed into one file that all servers map. Written once, at publishing."""

from __future__ import annotations

from pathlib import Path

PACKED_FORMAT = 1


def packed_name(database: Path) -> str:
    """The file name of a database's packed vectors, beside it: `index.sqlite` gives `index.vectors-1.bin`."""
    return f"{database.stem}.vectors-{PACKED_FORMAT}.bin"


def pack_vectors(database: Path, out: Path) -> None:
    """Writes the packed vectors of a database and flushes them to disk.

    Raises: RefusedCopyError when the database cannot be read; OSError when the file cannot be written.
    """
    raise NotImplementedError

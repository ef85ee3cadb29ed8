"""Whether a database that arrived is a sound DigUp index, before anything is served from it."""

from __future__ import annotations

from pathlib import Path


def check_database(path: Path, *, is_code: bool) -> None:
    """Proves that a database can be served; opens it immutable and changes nothing.

    Raises: RefusedCopyError with the reason as one sentence.
    """
    raise NotImplementedError

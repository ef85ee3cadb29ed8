"""The snapshot a running server answers from: sees `current` move, opens the new one, swaps."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from hermes_digup.index.snapshot import Snapshot


class Shelf:
    """One source's snapshot for a server. Threads: safe."""

    def __init__(self, source: Path, machine: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        raise NotImplementedError

    @property
    def refused(self) -> str | None:
        """Why a newer copy is not used; None when the newest is in use."""
        raise NotImplementedError

    def lease(self) -> AbstractContextManager[Snapshot]:
        """The snapshot in use, kept open until the block ends.

        Raises: NoIndexError when nothing is published; RefusedCopyError when what is there cannot be served.
        """
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

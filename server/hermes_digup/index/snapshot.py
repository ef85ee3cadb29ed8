"""One generation, opened: its main index, its code index if there is one, and what it says of itself."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from hermes_digup.index.database import Database


class Snapshot:
    """One opened generation; never changes."""

    folder: Path
    generation: str
    machine: str
    home: str | None
    main: Database
    code: Database | None
    taken_at: datetime | None
    warnings: tuple[str, ...]

    @property
    def confirmed_at(self) -> datetime | None:
        """When the source was last looked at; read afresh, as it moves without a new generation."""
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def open_snapshot(folder: Path, *, machine: str) -> Snapshot:
    """Opens a generation, or any folder with an index that nobody changes, and holds a shared lock on it.

    Raises: NoIndexError when there is no index; RefusedCopyError when it cannot be served.
    """
    raise NotImplementedError

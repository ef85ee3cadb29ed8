"""One generation, opened: its main index, its code index if there is one, and what it says of itself."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from hermes_digup.errors import BusyError, NoIndexError
from hermes_digup.index.database import CODE_FILE, Database
from hermes_digup.index.door import RESYNC
from hermes_digup.index.packed import packed_name
from hermes_digup.index.plain_files import ordinary_file

MAIN_FILE: Final = "index.sqlite"

_ABOUT: Final = "generation.json"
_CONFIRMED: Final = Path("landing") / "confirmed.json"
_LIMIT_BYTES: Final = 64 * 1024


class Snapshot:
    """One opened generation; never changes. A shared lock on its folder keeps it from being pruned."""

    def __init__(self, folder: Path, *, machine: str) -> None:
        """Opens a generation.

        Raises: NoIndexError, RefusedCopyError, BusyError as `open_snapshot`.
        """
        self.folder = folder
        self.generation = folder.name
        self.machine = machine
        with ExitStack() as stack:
            stack.callback(os.close, _shared_lock(folder))
            self.main = _opened(folder / MAIN_FILE)
            stack.callback(self.main.close)
            self.code: Database | None = None
            if (folder / CODE_FILE).is_file():
                self.code = _opened(folder / CODE_FILE)
                stack.callback(self.code.close)
            self._open = stack.pop_all()
        about = _said(folder / _ABOUT)
        self.home: str | None = about.get("home") or None
        self.taken_at: datetime | None = _moment(about.get("taken_at"))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of its databases."""
        return self.main.warnings + (self.code.warnings if self.code else ())

    @property
    def confirmed_at(self) -> datetime | None:
        """When the source was last looked at; read afresh, as it moves without a new generation."""
        return _moment(_said(self.folder.parent.parent / _CONFIRMED).get("confirmed_at"))

    def prove(self) -> None:
        """Looks whether all packed vectors are as they were written, which takes as long as reading them.

        Raises: RefusedCopyError, also when this is closed meanwhile.
        """
        self.main.prove()
        if self.code is not None:
            self.code.prove()

    def interrupt(self) -> None:
        """Stops every query at work, whoever asked."""
        self.main.interrupt()
        if self.code is not None:
            self.code.interrupt()

    def close(self) -> None:
        """Closes the databases and lets go of the lock."""
        self._open.close()


def open_snapshot(folder: Path, *, machine: str) -> Snapshot:
    """Opens a generation, or any folder with an index that nobody changes, and holds a shared lock on it.

    Raises: NoIndexError when there is no index; RefusedCopyError when it cannot be served; BusyError when it
    is being taken away at this moment.
    """
    return Snapshot(folder, machine=machine)


def _opened(path: Path) -> Database:
    return Database(path, packed=path.with_name(packed_name(path)))


def _shared_lock(folder: Path) -> int:
    """A descriptor that holds a shared lock on a folder, which must still be there afterwards."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise NoIndexError(
            "There is no index",
            where=str(folder),
            fix=RESYNC,
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise BusyError("This copy is being taken away", where=str(folder)) from error
    return descriptor


def _said(path: Path) -> dict[str, str]:
    """The texts of a small JSON object; none when it is missing or anything else.

    A laptop writes into its landing: whatever is there, nobody waits for it.
    """
    try:
        with ordinary_file(path) as descriptor:
            said = os.read(descriptor, _LIMIT_BYTES + 1)
        content = json.loads(said) if len(said) <= _LIMIT_BYTES else None
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, str)}


def _moment(text: str | None) -> datetime | None:
    """A time as ISO 8601 writes it, in UTC; None for anything else."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None

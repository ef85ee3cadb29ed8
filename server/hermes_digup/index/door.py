"""The one door to SQLite: read-only connections to files that never change, and its errors turned into ours.

What is inside a database is somebody else's bytes: columns may hold any type, texts may be no UTF-8, numbers
may be none. `as_text`, `as_number`, `as_real` make something usable of all of them.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from hermes_digup.errors import BusyError, RefusedCopyError

_STEPS_BETWEEN_LOOKS: Final = 20_000
RESYNC: Final = "Next: ansible-playbook playbooks/sync_now.yml"
_LIMIT_LENGTH: Final = 0  # SQLITE_LIMIT_LENGTH
_LARGEST_VALUE_BYTES: Final = 64 << 20  # DigUp's own values are a few kilobytes

_stop: ContextVar[Callable[[], bool] | None] = ContextVar("stop", default=None)


@contextmanager
def stopping_when(expired: Callable[[], bool] | None) -> Iterator[None]:
    """Ends every query of this thread that is still at work when `expired` says so; None: let them finish.

    Raises, inside the block: BusyError. Other threads' queries go on.
    """
    token = _stop.set(expired)
    try:
        yield
    finally:
        _stop.reset(token)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into ours.

    Raises: BusyError when the query was stopped; RefusedCopyError for everything that a sound index never
    does.
    """
    try:
        yield
    except sqlite3.Error as error:
        if str(error) == "interrupted":
            raise BusyError(
                "The search was stopped because it took too long", fix="Try fewer words."
            ) from error
        raise RefusedCopyError(f"{path.name} cannot be read: {error}", where=str(path), fix=RESYNC) from error
    except MemoryError as error:  # or a value that claims to be enormous
        raise RefusedCopyError(
            f"{path.name} cannot be read: there is not enough memory for it",
            where=str(path),
            fix=f"Close other programs on this machine; if it stays so, the copy is damaged. {RESYNC}",
        ) from error
    except (OverflowError, UnicodeDecodeError) as error:
        # A number out of range, a fault whose own text is damaged.
        raise RefusedCopyError(
            f"{path.name} cannot be read: {type(error).__name__}", where=str(path), fix=RESYNC
        ) from error


def connect(path: Path) -> sqlite3.Connection:
    """A read-only connection to a database file that nobody changes; a log beside it is ignored.

    Threads: may be handed from one to another, not used by two at once. Raises: sqlite3.Error.
    """
    address = path.absolute().as_uri() + "?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.text_factory = _lenient
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA cell_size_check = ON")
        set_limit = getattr(connection, "setlimit", None)  # new in Python 3.11
        if set_limit is not None:
            set_limit(_LIMIT_LENGTH, _LARGEST_VALUE_BYTES)
    except BaseException:
        connection.close()
        raise
    return connection


def watch_deadline(connection: sqlite3.Connection) -> None:
    """Makes a connection heed this thread's `stopping_when`, if there is one.

    Raises: BusyError when the time is over already; many small queries never get to a look within one.
    """
    expired = _stop.get()
    if expired is not None and expired():
        raise _stopped()
    connection.set_progress_handler(expired, _STEPS_BETWEEN_LOOKS if expired else 0)


def _stopped() -> BusyError:
    return BusyError("The search was stopped because it took too long", fix="Try fewer words.")


def askable(text: str) -> str:
    """A text that SQLite takes as a parameter: without lone surrogates, which no stored text holds."""
    return text.encode("utf-8", "replace").decode("utf-8")


def as_text(value: object) -> str:
    """A column's value as text, whatever its type."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return _lenient(value)
    return "" if value is None else str(value)


def as_text_or_none(value: object) -> str | None:
    """The same, where absent means something."""
    return None if value is None else as_text(value)


def as_real(value: object) -> float | None:
    """A column's value as a finite number; None when it is none."""
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return None


def as_number(value: object) -> int:
    """A column's value as a whole number; 0 when it is none."""
    real = as_real(value)
    if real is None:
        return 0
    return value if isinstance(value, int) else int(real)


def _lenient(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")

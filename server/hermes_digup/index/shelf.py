"""The snapshot a running server answers from: sees `current` move, opens the new one, swaps.

Queries that are at work finish on the snapshot they began with; the last one to leave an old snapshot closes
it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from hermes_digup.errors import BusyError, DigupError, NoIndexError
from hermes_digup.index.door import RESYNC, stopping_when
from hermes_digup.index.snapshot import Snapshot, open_snapshot

CURRENT: Final = "current"

_LOOK_EVERY_S: Final = 1.0
_TRY_AGAIN_S: Final = 30.0
_TRIES: Final = 3


@dataclass(slots=True)
class _Held:
    """A snapshot and how many hold it, the shelf included."""

    snapshot: Snapshot
    target: Path
    holders: int = 1


class _Refused(NamedTuple):
    """A copy that cannot be used, why, and when that was found."""

    target: Path
    error: DigupError
    at: float


class Shelf:
    """One source's snapshot for a server.

    Threads: safe. One thread at a time opens a newer copy; the others go on with the one in use.
    """

    def __init__(self, source: Path, machine: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._machine, self._clock = source, machine, clock
        self._held: _Held | None = None
        self._refused: _Refused | None = None
        self._looked_at: float | None = None
        self._closed = False
        self._lock = threading.Lock()  # guards the fields
        self._opening = threading.Lock()  # held by the one who looks and opens

    @property
    def refused(self) -> str | None:
        """Why a newer copy is not used; None when the newest is in use."""
        with self._lock:
            return str(self._refused.error) if self._refused else None

    @contextmanager
    def lease(self) -> Iterator[Snapshot]:
        """The snapshot in use, kept open until the block ends.

        Raises: NoIndexError when nothing is published; RefusedCopyError when what is there cannot be served.
        """
        self._look()
        with self._lock:
            held = self._held
            if held is None:
                raise self._refused.error if self._refused else _nothing(self._source)
            held.holders += 1
        try:
            yield held.snapshot
        finally:
            self._leave(held)

    def close(self) -> None:
        """Lets go of the snapshot; what is at work finishes first."""
        with self._opening:
            self._closed = True
            self._swap(None)

    def _look(self) -> None:
        """Looks whether `current` has moved, at most once a second; only a first lease waits for it."""
        with self._lock:
            first = self._held is None
            if not first and self._looked_at is not None and self._clock() - self._looked_at < _LOOK_EVERY_S:
                return
        if not self._opening.acquire(blocking=first):
            return
        try:
            with self._lock:
                self._looked_at = self._clock()
            # Whoever asked has a deadline; a new copy is opened for all.
            with stopping_when(None):
                if not self._closed:
                    self._follow()
        finally:
            self._opening.release()

    def _follow(self) -> None:
        """Opens what `current` points at; again if it moved on and the copy was taken away in between."""
        for _ in range(_TRIES):
            target = self._target()
            if target is None:
                self._swap(None)
            elif self._held is not None and self._held.target == target:
                self._note(None)
            elif self._may_try(target) and not self._open(target):
                continue
            return

    def _target(self) -> Path | None:
        """What `current` points at; None when nothing is in use (never published, or retired)."""
        try:
            return (self._source / CURRENT).readlink()
        except OSError:
            return None

    def _may_try(self, target: Path) -> bool:
        refused = self._refused
        return refused is None or refused.target != target or self._clock() - refused.at >= _TRY_AGAIN_S

    def _open(self, target: Path) -> bool:
        """Opens a copy and puts it into use, or notes why not. False: it went away, look again."""
        try:
            snapshot = open_snapshot(self._source / target, machine=self._machine)
        except BusyError:
            return False
        except DigupError as error:
            if self._target() != target:
                return False
            if self._held is None:
                self._fall_back(target)
            self._note(_Refused(target, error, self._clock()))
        else:
            self._swap(_Held(snapshot, target))
        return True

    def _fall_back(self, refused: Path) -> None:
        """After a restart, an older copy answers when the one in use has gone bad on this disk."""

        def age(folder: Path) -> int:
            return folder.lstat().st_mtime_ns

        try:
            folders = sorted((self._source / refused).parent.glob("[!.]*"), key=age, reverse=True)
        except OSError:
            return
        for folder in folders:
            target = refused.with_name(folder.name)
            if target == refused:
                continue
            try:
                self._swap(_Held(open_snapshot(folder, machine=self._machine), target))
            except DigupError:
                continue
            return

    def _note(self, refused: _Refused | None) -> None:
        with self._lock:
            self._refused = refused

    def _swap(self, new: _Held | None) -> None:
        with self._lock:
            old, self._held, self._refused = self._held, new, None
        if new is not None:
            threading.Thread(target=_prove, args=(new.snapshot,), name="proof", daemon=True).start()
        if old is not None:
            self._leave(old)

    def _leave(self, held: _Held) -> None:
        with self._lock:
            held.holders -= 1
            last = held.holders == 0
        if last:
            held.snapshot.close()


def _prove(snapshot: Snapshot) -> None:
    """Searches need not wait for the proof; what it cannot do is said by the search that finds the same."""
    with suppress(DigupError):
        snapshot.prove()


def _nothing(source: Path) -> NoIndexError:
    return NoIndexError(
        f"Nothing is published for {source.name} yet",
        where=str(source),
        fix=RESYNC,
    )

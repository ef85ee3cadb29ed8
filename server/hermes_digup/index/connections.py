"""The connections of one opened database: handed to one thread at a time, opened as needed, few kept idle."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hermes_digup.errors import RefusedCopyError
from hermes_digup.index.door import connect, reading, watch_deadline

_IDLE: Final = 4


class Connections:
    """Read-only connections to one file that never changes. Threads: safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        self._busy: set[sqlite3.Connection] = set()
        self._closed = False
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[sqlite3.Connection]:
        """A connection until the block ends.

        Raises: RefusedCopyError for what a sound index never does; BusyError when `stopping_when` ended a
        query.
        """
        with reading(self._path):
            connection = self._taken()
            try:
                watch_deadline(connection)
                yield connection
            finally:
                self._put_back(connection)

    def interrupt(self) -> None:
        """Stops every query at work, whoever asked."""
        with self._lock:
            for connection in self._busy:
                connection.interrupt()

    def close(self) -> None:
        """Closes what is idle; a connection still at work is closed when its work ends."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _taken(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise RefusedCopyError(f"{self._path.name} is closed", where=str(self._path))
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = connect(self._path)
        with self._lock:
            self._busy.add(connection)
        return connection

    def _put_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            self._busy.discard(connection)
            if not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()

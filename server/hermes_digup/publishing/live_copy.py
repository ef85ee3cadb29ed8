"""One consistent copy of a database that DigUp may be writing, without a trace in DigUp's own folder.

The laptop's own server plays both halves of a changed file's journey; this is the first one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from hermes_digup.errors import BusyError, DigupError, DiskFullError, NoIndexError, RefusedCopyError
from hermes_digup.publishing.disk import flush, is_full, remove
from hermes_digup.publishing.manifest import CODE, MAIN

_BUSY_MS = 5000
_TRIES = 3
_HEADER_BYTES = 100
_LOG_HEADER_BYTES = 32
_LOG_END_BYTES = 4096
_LOG_INDEX_BYTES = 136
_WAL_MODE = 2
_WRITE_VERSION = slice(18, 19)


def databases(folder: Path) -> list[Path]:
    """The databases of a folder that DigUp writes: the main index, and the code index while there is one.

    Raises: NoIndexError when there is no main index.
    """
    if not (folder / MAIN).is_file():
        raise NoIndexError(
            f"{folder} holds no {MAIN}",
            fix="Next: let DigUp finish its first pass, or set DIGUP_INDEX_DIR to DigUp's index folder.",
        )
    return [path for path in (folder / MAIN, folder / CODE) if path.is_file()]


def state_key(folder: Path) -> str:
    """What changes whenever the databases do, taken without opening them as databases.

    Times do not tell two changes within one tick of the clock apart, so the first bytes of the file, both
    ends of its log and the log's index are part of it.
    """
    digest = hashlib.sha256()
    for path in databases(folder):
        log, index = _beside(path, "-wal"), _beside(path, "-shm")
        parts = [
            path.name.encode(),
            _stat_text(path),
            _bytes_of(path, 0, _HEADER_BYTES),
            _stat_text(log),
            _bytes_of(log, 0, _LOG_HEADER_BYTES),
            _bytes_of(log, -_LOG_END_BYTES, _LOG_END_BYTES),
            _bytes_of(index, 0, _LOG_INDEX_BYTES),
        ]
        for part in parts:
            digest.update(len(part).to_bytes(4, "little") + part)
    return digest.hexdigest()


def copy_database(path: Path, to: Path) -> None:
    """Writes one self-contained copy, log included, of one moment of a database.

    Raises: BusyError when it keeps changing; RefusedCopyError when SQLite cannot read it; DiskFullError.
    """
    remove(to)
    try:
        for _ in range(_TRIES):
            if _copied(path, to):
                flush(to)
                return
    except sqlite3.Error as error:
        raise RefusedCopyError(f"{path.name} cannot be copied: {error}", where=str(path)) from error
    except OSError as error:
        if is_full(error):
            raise DiskFullError(f"no room for a copy of {path.name}", where=str(to.parent)) from error
        raise DigupError(f"{path.name} cannot be copied: {error.strerror}", where=str(path)) from error
    raise BusyError(f"{path.name} changed while it was copied, {_TRIES} times", where=str(path))


def _copied(path: Path, to: Path) -> bool:
    """One try, in the way that the files beside the database allow; False when it changed underneath."""
    log, index = _beside(path, "-wal"), _beside(path, "-shm")
    if not _is_in_log_mode(path):
        _back_up(_uri(path, "mode=ro"), to)
        return True
    if log.exists() and index.exists():
        # Somebody has it open, or died with it open: SQLite reads the log that is there, and maps its index
        # without the right to change it.
        _back_up(_uri(path, "mode=ro&readonly_shm=1"), to)
        return True
    before = _traces(path)
    if log.exists():
        _copy_with_log(path, log, to)
    else:
        _back_up(_uri(path, "mode=ro&immutable=1"), to)
    return _traces(path) == before


def _copy_with_log(path: Path, log: Path, to: Path) -> None:
    """A log without its index: nobody has the database open. Both are copied, and opened elsewhere."""
    work = to.with_name(f".{to.name}.raw")
    remove(work)
    work.mkdir(mode=0o700)
    try:
        shutil.copyfile(path, work / path.name)
        shutil.copyfile(log, work / log.name)
        _back_up(_uri(work / path.name, "mode=rw"), to)
    finally:
        remove(work)


def _back_up(uri: str, to: Path) -> None:
    """A backup within a read transaction: without one, every foreign commit would start it over."""
    remove(to)
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as source:
        source.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        source.execute("BEGIN")
        source.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
        to.touch(mode=0o600)
        with closing(sqlite3.connect(to, isolation_level=None)) as target:
            target.execute("PRAGMA synchronous=OFF")
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")


def _is_in_log_mode(path: Path) -> bool:
    return _bytes_of(path, 0, _HEADER_BYTES)[_WRITE_VERSION] == bytes([_WAL_MODE])


def _traces(path: Path) -> tuple[bytes, ...]:
    return (_stat_text(path), _bytes_of(path, 0, _HEADER_BYTES), _stat_text(_beside(path, "-wal")))


def _stat_text(path: Path) -> bytes:
    try:
        at = path.stat()
    except OSError:
        return b"none"
    return f"{at.st_dev} {at.st_ino} {at.st_size} {at.st_mtime_ns}".encode()


def _bytes_of(path: Path, start: int, length: int) -> bytes:
    """Some bytes of a file, from its start or, when negative, from its end; none when it isn't there."""
    try:
        with path.open("rb") as file:
            if start < 0:
                file.seek(max(start, -path.stat().st_size), os.SEEK_END)
            return file.read(length)
    except OSError:
        return b""


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _uri(path: Path, how: str) -> str:
    return f"{path.absolute().as_uri()}?{how}"

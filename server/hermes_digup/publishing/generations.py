"""One proved copy on disk: built beside, sealed, put into use by one rename, and the oldest ones taken away.

A generation's databases are hard links to what arrived: nothing is copied, and nothing is ever rewritten.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_digup.errors import DigupError, DiskFullError, RefusedCopyError
from hermes_digup.index import check_database, open_snapshot, pack_vectors, packed_name
from hermes_digup.publishing.disk import flush, is_full, remove, write_durably
from hermes_digup.publishing.landing import LandedFile
from hermes_digup.publishing.layout import OLD_PREFIX, WORK_PREFIX, Layout
from hermes_digup.publishing.manifest import CODE
from hermes_digup.publishing.records import GENERATION_FILE, GenerationRecord

log = logging.getLogger(__name__)


class MovedError(Exception):
    """A file in landing was replaced between hashing and linking: a new delivery is arriving."""


def build(layout: Layout, record: GenerationRecord, files: Iterable[LandedFile]) -> None:
    """Makes the generation of a record from hashed files: linked, proved, packed, sealed.

    Raises: MovedError; RefusedCopyError from the checks; DiskFullError, OSError. Nothing is left then.
    """
    work = layout.generations / (WORK_PREFIX + record.id)
    remove(work)
    try:
        work.mkdir(parents=True, mode=0o700)
        for file in files:
            _link(file, work / file.name)
        for file in files:
            _prove_and_pack(work / file.name)
        for path in work.iterdir():
            flush(path)
        # The record comes last, as writing it also flushes the folder with all its names.
        write_durably(work / GENERATION_FILE, record.model_dump_json(exclude_none=True).encode() + b"\n")
    except OSError as error:
        remove(work)
        if is_full(error):
            raise DiskFullError("no room for the packed vectors", where=str(work)) from error
        raise
    except BaseException:
        remove(work)
        raise
    work.rename(layout.generations / record.id)
    flush(layout.generations)


def is_whole(layout: Layout, generation: str) -> bool:
    """Whether a generation has its record, its databases and packed vectors of the present format.

    It was sealed before it got its name, so its content needs no second proof.
    """
    folder = layout.generations / generation
    record = folder / GENERATION_FILE
    databases = [path for path in folder.glob("*.sqlite") if path.is_file()]
    return (
        record.is_file()
        and bool(databases)
        and all((folder / packed_name(path)).is_file() for path in databases)
    )


def is_usable(layout: Layout, generation: str) -> bool:
    """Whether a generation is whole and opens as servers open it: a card can lose what once was sound."""
    try:
        open_snapshot(layout.generations / generation, machine=layout.name).close()
    except DigupError:
        return False
    return is_whole(layout, generation)


def free_id(layout: Layout, wanted: str) -> str:
    """The wanted name, or with a number when it is taken: a generation in use is never built over."""
    taken = {path.name for path in layout.generations.iterdir()} if layout.generations.is_dir() else set()
    number, name = 1, wanted
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name


def switch(layout: Layout, generation: str) -> None:
    """Puts a sealed generation into use. Readers see the former one or this one."""
    _mark_newest(layout, generation)
    beside = layout.folder / ".current.new"
    remove(beside)
    beside.symlink_to(Path("generations") / generation)
    beside.rename(layout.current)
    flush(layout.folder)


def clear_leftovers(layout: Layout) -> None:
    """Takes away what a killed run left. The caller holds the lock."""
    if layout.generations.is_dir():
        for path in layout.generations.iterdir():
            if path.name.startswith((WORK_PREFIX, OLD_PREFIX)):
                remove(path)
    for name in (".current.new", ".state.json.new"):
        remove(layout.folder / name)


def prune(layout: Layout, *, keep_former: bool = True) -> list[str]:
    """Takes away old generations: the current one and the one before stay, one more while somebody reads it.

    Without `keep_former`, for a full disk, only the current one and one that is read stay. Returns what went.
    """
    gone, current = [], layout.current_id()
    room = 1 if keep_former else 0
    room_for_read = 1
    for folder in _newest_first(layout):
        if folder.name == current:
            continue
        if room:
            room -= 1
            continue
        with _unread(folder) as unread:
            if not unread and room_for_read:
                room_for_read -= 1
                continue
            old = folder.with_name(OLD_PREFIX + folder.name)
            folder.rename(old)
        remove(old)
        gone.append(folder.name)
    return gone


def _mark_newest(layout: Layout, generation: str) -> None:
    """The folders' times keep the order in which they came into use, also when the clock went back."""
    latest = max((folder.lstat().st_mtime_ns for folder in _newest_first(layout)), default=0)
    moment = max(time.time_ns(), latest + 1)
    os.utime(layout.generations / generation, ns=(moment, moment))


def _newest_first(layout: Layout) -> list[Path]:
    if not layout.generations.is_dir():
        return []
    folders = [path for path in layout.generations.iterdir() if not path.name.startswith(".")]
    return sorted(folders, key=lambda path: path.lstat().st_mtime_ns, reverse=True)


@contextmanager
def _unread(folder: Path) -> Iterator[bool]:
    """Whether no reader has its shared lock on the folder; none can get one before the block ends."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _prove_and_pack(database: Path) -> None:
    """What the checks did not foresee in a stranger's bytes is a refusal too: it would end so again."""
    try:
        check_database(database, is_code=database.name == CODE)
        pack_vectors(database, database.with_name(packed_name(database)))
    except (DigupError, OSError):
        raise
    except Exception as error:
        log.exception("check file=%s", database)
        what = f"{database.name} could not be checked ({type(error).__name__})"
        raise RefusedCopyError(what, where=str(database)) from error


def _link(file: LandedFile, to: Path) -> None:
    """Gives the hashed file a second name, and makes sure that it is the hashed one."""
    try:
        os.link(file.path, to, follow_symlinks=False)
    except FileNotFoundError as error:
        raise MovedError from error
    linked, hashed = to.lstat(), os.fstat(file.descriptor)
    if (linked.st_dev, linked.st_ino) != (hashed.st_dev, hashed.st_ino):
        raise MovedError

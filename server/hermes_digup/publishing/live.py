"""The live folder: a server beside DigUp itself, answering from copies and never from the files DigUp writes.

When DigUp's databases change, one copy is taken and published like any delivery, so that everything behind it
(`current`, shelf, snapshot) is the same on the laptop as on the Pi.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

from hermes_digup.errors import BusyError, DigupError, RefusedCopyError
from hermes_digup.publishing.disk import opened_file, our_faults, remove, sha256_of, small_file, write_durably
from hermes_digup.publishing.layout import Layout
from hermes_digup.publishing.live_copy import copy_database, databases, state_key
from hermes_digup.publishing.lock import locked
from hermes_digup.publishing.manifest import CODE, MAIN
from hermes_digup.publishing.outcome import Outcome, plain
from hermes_digup.publishing.publisher import publish

LOOK_EVERY_S = 5.0
COPY_EVERY_S = 10.0
RETRY_AFTER_S = 60.0
CONFIRM_EVERY_S = 600.0

log = logging.getLogger(__name__)

_NOTE_BYTES = 4096
_WAIT_S = 120.0
_LOOK_AT_CHILD_S = 0.1


class LiveFolder:
    """A folder that DigUp writes, as a source of published copies. `source` is what a shelf opens.

    `refresh` looks once, in this process; `start` keeps looking in a thread and copies in a child process of
    low priority, until `close`. Several processes may follow one folder: one copies, the others use it.
    """

    def __init__(
        self,
        folder: Path,
        cache_dir: Path,
        *,
        look_every_s: float = LOOK_EVERY_S,
        copy_every_s: float = COPY_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder.expanduser().resolve()
        name = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        self.source = cache_dir / "live" / name
        self.machine = platform.node().partition(".")[0] or "this machine"
        self._layout = Layout(self.source)
        self._look_every_s, self._copy_every_s, self._clock = look_every_s, copy_every_s, clock
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._unseen = ""
        self._next_copy = self._next_confirmation = clock()

    @property
    def problem(self) -> str | None:
        """Why the newest state of the folder could not be copied; None when it could."""
        return self._unseen or _read_note(self._note_path).get("problem") or None

    def is_changed(self) -> bool:
        """Whether the folder differs from what was copied last.

        Raises: NoIndexError when there is no index in it.
        """
        return _read_note(self._note_path).get("key") != state_key(self.folder)

    def refresh(self, *, wait_s: float = _WAIT_S) -> Outcome | None:
        """Copies and publishes what changed, in this process; None when nothing did.

        Raises: NoIndexError, RefusedCopyError, BusyError, DiskFullError when no copy can be taken.
        """
        databases(self.folder)
        self._layout.landing.mkdir(parents=True, exist_ok=True, mode=0o700)
        with our_faults(f"copying {self.folder} failed", self.source), self._alone(wait_s):
            key = state_key(self.folder)
            if _read_note(self._note_path).get("key") == key:
                self._confirm(_utc_now())
                return None
            try:
                self._land()
                outcome = publish(self.source)
            except DigupError as error:
                _write_note(self._note_path, key="", problem=plain(error.what))
                raise
            refused = outcome.reason if outcome.state == "refused" else ""
            _write_note(self._note_path, key="" if outcome.disk_full else key, problem=refused)
            return outcome

    def start(self) -> None:
        """Follows the folder from now on."""
        self._thread = threading.Thread(target=self._follow, name="live-folder", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops following; a copy in the making is dropped, which leaves the last one in use."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def _note_path(self) -> Path:
        return self.source / "live.json"

    def _alone(self, wait_s: float) -> AbstractContextManager[None]:
        return locked(
            self.source / "live.lock", wait_s=wait_s, busy="another process is copying DigUp's index"
        )

    def _follow(self) -> None:
        while not self._closing.is_set():
            unseen = ""
            try:
                self._look()
            except (DigupError, OSError) as error:
                unseen = plain(error.what if isinstance(error, DigupError) else str(error))
                if unseen != self._unseen:
                    log.warning("live folder=%s problem=%s", self.folder, unseen)
            self._unseen = unseen
            self._closing.wait(self._look_every_s)

    def _look(self) -> None:
        now = self._clock()
        if self.is_changed():
            if now >= self._next_copy:
                self._next_copy = now + self._copy_every_s
                if self._run_child() != 0:
                    self._next_copy = self._clock() + RETRY_AFTER_S
        elif now >= self._next_confirmation:
            with suppress(BusyError), self._alone(0):  # whoever is copying confirms
                self._confirm(_utc_now())
            self._next_confirmation = now + CONFIRM_EVERY_S

    def _run_child(self) -> int:
        """A process of its own, as copying must not slow an answer down. Its output goes nowhere."""
        arguments = [
            sys.executable,
            "-m",
            "hermes_digup.publishing.live_child",
            str(self.folder),
            str(self.source.parent.parent),
        ]
        nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
        child = os.posix_spawn(sys.executable, arguments, dict(os.environb), file_actions=nothing)
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if self._closing.wait(_LOOK_AT_CHILD_S):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return 0

    def _land(self) -> None:
        """Fills the landing as the laptop's script fills the Pi's: databases first, the manifest last."""
        taken_at, landing = _utc_now(), self._layout.landing
        files: dict[str, dict[str, object]] = {}
        work = landing / ".copy"
        remove(work)
        work.mkdir(mode=0o700)
        for path in databases(self.folder):
            copy_database(path, work / path.name)
            with opened_file(work / path.name) as descriptor:
                size, digest = sha256_of(descriptor)
            (work / path.name).rename(landing / path.name)
            files[path.name] = {"size": size, "sha256": digest}
        remove(work)
        if CODE not in files:
            remove(landing / CODE)
        self._confirm(taken_at)
        manifest = {
            "format": 1,
            "source": self.machine,
            "home": str(Path.home()),
            "schema": _schema_of(landing / MAIN),
            "taken_at": _written(taken_at),
            "confirmed_at": _written(taken_at),
            "script_version": version("hermes-digup"),
            "files": files,
        }
        write_durably(self._layout.manifest, json.dumps(manifest).encode() + b"\n")

    def _confirm(self, at: datetime) -> None:
        write_durably(
            self._layout.confirmed, json.dumps({"format": 1, "confirmed_at": _written(at)}).encode()
        )


def _schema_of(database: Path) -> int:
    uri = f"{database.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _read_note(path: Path) -> dict[str, str]:
    try:
        note = json.loads(small_file(path, _NOTE_BYTES))
    except (OSError, ValueError, RefusedCopyError):
        return {}
    return note if isinstance(note, dict) else {}


def _write_note(path: Path, *, key: str, problem: str) -> None:
    write_durably(path, json.dumps({"key": key, "problem": problem}).encode())


def _utc_now() -> datetime:
    return datetime.now(timezone.utc)


def _written(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")

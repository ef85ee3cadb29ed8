"""One look at one manifest: from reading what arrived to the outcome that is written down.

Everything foreseeable ends in an outcome; until a proved copy replaces it, the one in use stays in use.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import datetime
from importlib.metadata import version

from hermes_digup.errors import DiskFullError, RefusedCopyError
from hermes_digup.publishing.disk import is_full, remove
from hermes_digup.publishing.generations import MovedError, build, free_id, is_usable, prune, switch
from hermes_digup.publishing.landing import (
    IncompleteError,
    LandedFile,
    complete_landing,
    is_the_same_file,
    stamps,
)
from hermes_digup.publishing.layout import Layout
from hermes_digup.publishing.manifest import FromTheFutureError, Manifest, manifest_bytes, parse_manifest
from hermes_digup.publishing.outcome import Outcome, State, plain
from hermes_digup.publishing.records import (
    GenerationRecord,
    Refusal,
    StateRecord,
    read_generation,
    read_state,
    write_state,
)

log = logging.getLogger(__name__)

_MADE_ROOM = "the disk was full, so the copy before the one in use was removed to make room"


class Attempt:
    """One look at one manifest, from reading it to the recorded outcome."""

    def __init__(self, layout: Layout, *, force: bool, now: datetime) -> None:
        self._layout, self._force, self._now = layout, force, now
        self._digest = manifest_digest(layout)
        self._state = None if force else read_state(layout)
        self._generation: str | None = None
        self._note = ""
        self._moved = False

    def run(self) -> Outcome:
        try:
            return self._run()
        except IncompleteError as error:
            return self._ended("incomplete", str(error))
        except MovedError:
            self._moved = True
            return self._ended("incomplete", "a newer delivery is arriving")
        except DiskFullError:
            return self._failed("the disk is full", disk_full=True)
        except FromTheFutureError as error:
            return self._failed(error.what)
        except RefusedCopyError as error:
            return self._refused(error.what)
        except OSError as error:
            return self._failed(f"it could not be read or stored: {error.strerror}", disk_full=is_full(error))

    def has_moved(self) -> bool:
        """Whether another delivery arrived while this one was looked at."""
        return self._moved or manifest_digest(self._layout) != self._digest

    def _run(self) -> Outcome:
        layout, state = self._layout, self._state
        if state and state.state == "retired" and state.retired_manifest_sha256 == self._digest:
            remove(layout.current)
            return Outcome(layout.name, "retired", None, state.reason)
        if state and (refusal := state.refusal) and self._is_known(refusal):
            return Outcome(layout.name, "refused", layout.current_id(), refusal.reason)
        try:
            manifest = parse_manifest(manifest_bytes(layout), self._now)
        except FileNotFoundError as error:
            raise IncompleteError("no manifest.json has arrived yet") from error
        self._generation = manifest.generation
        if self._is_in_use(manifest, linked=True):
            return self._settled("unchanged")
        with complete_landing(layout, manifest) as files:
            if self._is_in_use(manifest, linked=False):
                return self._settled("unchanged")
            if state and (refusal := state.refusal) and self._is_same_content(refusal):
                return self._refused(refusal.reason)
            generation = self._made(manifest, files)
        switch(layout, generation)
        return self._settled("published")

    def _settled(self, state: State) -> Outcome:
        """Old copies go only now; a run that was killed before this left that to the next one."""
        if gone := prune(self._layout):
            log.info("pruned source=%s generations=%s", self._layout.name, ",".join(gone))
        return self._ended(state)

    def _made(self, manifest: Manifest, files: list[LandedFile]) -> str:
        """The generation of these files: the one that is there already, or a new one."""
        if not self._force and is_usable(self._layout, manifest.generation):
            return manifest.generation
        name = free_id(self._layout, manifest.generation)
        record = GenerationRecord(
            id=name,
            source=self._layout.name,
            home=manifest.home or None,
            schema_version=manifest.schema_version,
            taken_at=manifest.taken_at,
            published_at=self._now,
            files=manifest.files,
        )
        try:
            build(self._layout, record, files)
        except DiskFullError:
            if not prune(self._layout, keep_former=False):
                raise
            self._note = _MADE_ROOM
            build(self._layout, record, files)
        return name

    def _is_in_use(self, manifest: Manifest, *, linked: bool) -> bool:
        """Whether these files are in use already; `linked`: landing holds the very files that were proved."""
        current = self._layout.current_id()
        if self._force or current is None or not is_usable(self._layout, current):
            return False
        folder = self._layout.generations / current
        record = read_generation(folder)
        if record is None or record.files != manifest.files:
            return False
        return not linked or all(
            is_the_same_file(self._layout.landing / name, folder / name) for name in manifest.files
        )

    def _is_known(self, refusal: Refusal) -> bool:
        """Whether exactly this landing was refused before, as can be told without reading it."""
        same = refusal.manifest_sha256 == self._digest and refusal.program == _program()
        return same and refusal.stamps == stamps(self._layout)

    def _is_same_content(self, refusal: Refusal) -> bool:
        return refusal.generation == self._generation and refusal.program == _program()

    def _refused(self, reason: str) -> Outcome:
        """The content is unfit, and stays so: remembered, so that it is not proved again and again."""
        refusal = Refusal(
            manifest_sha256=self._digest,
            stamps=stamps(self._layout),
            generation=self._generation,
            program=_program(),
            reason=plain(reason),
        )
        return self._ended("refused", reason, refusal=refusal)

    def _failed(self, reason: str, *, disk_full: bool = False) -> Outcome:
        """The content may be fine: the next run tries again."""
        return self._ended("refused", reason, disk_full=disk_full)

    def _ended(
        self, state: State, reason: str = "", *, refusal: Refusal | None = None, disk_full: bool = False
    ) -> Outcome:
        """Writes the outcome down, unless it stands there already, and gives it back."""
        reason = plain(reason)
        record = StateRecord(
            state="published" if state == "unchanged" else state,
            reason=reason,
            note=self._note,
            since=self._now,
            refusal=refusal,
        )
        former = read_state(self._layout)
        if former is None or former.model_copy(update={"since": self._now}) != record:
            try:
                write_state(self._layout, record)
            except OSError as error:
                log.warning("state.json of %s cannot be written: %s", self._layout.name, error.strerror)
        return Outcome(
            self._layout.name, state, self._layout.current_id(), reason, self._note, disk_full=disk_full
        )


def _program() -> str:
    """A newer program may take what this one refuses."""
    return version("hermes-digup")


def manifest_digest(layout: Layout) -> str:
    """What tells one delivered manifest from the next; empty when there is none."""
    try:
        return hashlib.sha256(manifest_bytes(layout)).hexdigest()
    except FileNotFoundError:
        return ""
    except (OSError, RefusedCopyError):
        at = layout.manifest.lstat()
        return f"unreadable {at.st_ino} {at.st_size} {at.st_mtime_ns}"

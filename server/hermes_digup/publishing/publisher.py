"""From landing to `current`: a delivery becomes the copy that all servers answer from, or a reason why not.

Killed anywhere, the old or the new copy is in use, never a mixture, and the next run clears what was left.
One publisher works on a source at a time; servers never publish.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from pathlib import Path

from hermes_digup.errors import NoIndexError
from hermes_digup.publishing.attempt import Attempt, manifest_digest
from hermes_digup.publishing.disk import flush, our_faults, remove
from hermes_digup.publishing.generations import clear_leftovers
from hermes_digup.publishing.layout import Layout
from hermes_digup.publishing.lock import locked
from hermes_digup.publishing.outcome import Outcome
from hermes_digup.publishing.records import StateRecord, write_state

WAIT_S = 600.0
"""A Pi may need minutes to prove a large index, and the laptop's `publish` waits for the one at work."""

log = logging.getLogger(__name__)

_ROUNDS = 3


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


def publish(
    source: Path, *, force: bool = False, wait_s: float = WAIT_S, clock: Callable[[], datetime] = utc_now
) -> Outcome:
    """Proves what arrived in a source's landing and puts it into use.

    `force` proves again what was refused, retired or is in use already.
    Raises: NoIndexError when there is no such source; BusyError when another publisher takes longer than
    `wait_s`; DiskFullError, DigupError when not even the lock can be had.
    """
    layout = _existing(source)
    with our_faults(f"publishing {layout.name} failed", source), _alone(layout, wait_s):
        clear_leftovers(layout)
        outcome = _newest(layout, force=force, clock=clock)
    log.info("publish source=%s state=%s generation=%s", outcome.source, outcome.state, outcome.generation)
    return outcome


def retire(source: Path, *, wait_s: float = WAIT_S, clock: Callable[[], datetime] = utc_now) -> Outcome:
    """Takes a source out of use, as its laptop is no longer managed: servers drop it at once, its files stay.

    A new delivery, or a forced publish, brings it back.
    """
    layout = _existing(source)
    with our_faults(f"retiring {layout.name} failed", source), _alone(layout, wait_s):
        clear_leftovers(layout)
        state = StateRecord(
            state="retired",
            reason="its laptop was taken out of the setup",
            since=clock(),
            retired_manifest_sha256=manifest_digest(layout),
        )
        write_state(layout, state)
        remove(layout.current)
        flush(layout.folder)
    return Outcome(layout.name, "retired", None, state.reason)


def _newest(layout: Layout, *, force: bool, clock: Callable[[], datetime]) -> Outcome:
    """Publishes the newest landing: starts over, a few times, when another manifest arrives meanwhile."""
    for _ in range(_ROUNDS):
        attempt = Attempt(layout, force=force, now=clock())
        outcome = attempt.run()
        if not attempt.has_moved():
            break
        force = False
    return outcome


def _alone(layout: Layout, wait_s: float) -> AbstractContextManager[None]:
    return locked(
        layout.lock,
        wait_s=wait_s,
        busy=f"another publisher has been at work on {layout.name} for longer than {wait_s:.0f} s",
    )


def _existing(source: Path) -> Layout:
    if not source.is_dir():
        raise NoIndexError(f"there is no source {source.name}", where=str(source.parent))
    return Layout(source)

"""What publishing came to, and what is known of a source: the values that the command line prints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from hermes_digup.errors import DiskFullError, NoIndexError, RefusedCopyError
from hermes_digup.publishing.generations import is_usable
from hermes_digup.publishing.layout import Layout
from hermes_digup.publishing.manifest import confirmed_at
from hermes_digup.publishing.records import read_generation, read_state

State = Literal["published", "unchanged", "incomplete", "refused", "retired"]

_EXIT_CODES = {
    "published": 0,
    "unchanged": 0,
    "incomplete": NoIndexError.exit_code,
    "retired": 0,
    "refused": RefusedCopyError.exit_code,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one publishing.

    `generation` is the one in use now, which after a refusal is the former one. `reason` says why a copy is
    not in use; `note` what else a person should know.
    """

    source: str
    state: State
    generation: str | None
    reason: str = ""
    note: str = ""
    disk_full: bool = False

    @property
    def exit_code(self) -> int:
        return DiskFullError.exit_code if self.disk_full else _EXIT_CODES[self.state]

    def as_json(self) -> str:
        """One line, as the laptop's script expects it: plain characters, no escaped quotes."""
        return json.dumps(
            {
                "state": self.state,
                "source": self.source,
                "generation": self.generation,
                "reason": self.reason,
                "note": self.note,
            }
        )


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """What is known of one source: the copy in use, and what became of the newest delivery.

    `state` is `waiting` while nothing has been published or tried yet.
    """

    source: str
    state: Literal["published", "incomplete", "refused", "retired", "waiting"]
    generation: str | None
    reason: str = ""
    note: str = ""
    taken_at: datetime | None = None
    confirmed_at: datetime | None = None
    published_at: datetime | None = None
    since: datetime | None = None

    def as_json(self) -> str:
        """One line; times in UTC as the manifest writes them."""
        fields = {
            "state": self.state,
            "source": self.source,
            "generation": self.generation,
            "reason": self.reason,
            "note": self.note,
            "taken_at": _written(self.taken_at),
            "confirmed_at": _written(self.confirmed_at),
            "published_at": _written(self.published_at),
            "since": _written(self.since),
        }
        return json.dumps(fields)


def source_status(source: Path, *, now: datetime | None = None, prove: bool = False) -> SourceStatus:
    """What `receive … status` and `hermes-digup status` show of a source. Takes no lock, changes nothing.

    `prove`: a copy in use that cannot be opened any more is no generation, so that a laptop sends it again.
    """
    layout = Layout(source)
    state, generation = read_state(layout), layout.current_id()
    if prove and generation and not is_usable(layout, generation):
        generation = None
    record = read_generation(layout.generations / generation) if generation else None
    return SourceStatus(
        source=layout.name,
        state=state.state if state else ("published" if generation else "waiting"),
        generation=generation,
        reason=state.reason if state else "",
        note=state.note if state else "",
        taken_at=record.taken_at if record else None,
        confirmed_at=confirmed_at(layout, now or datetime.now(timezone.utc)),
        published_at=record.published_at if record else None,
        since=state.since if state else None,
    )


def plain(text: str) -> str:
    """A reason that came near a stranger's words, fit for one line of a log, a terminal or a shell script."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown.replace('"', "'").replace("\\", "/")[:500]


def _written(time: datetime | None) -> str | None:
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ") if time else None

"""What publishing writes down: `generation.json` about one proved copy, `state.json` about the last outcome.

Both are ours, yet read with care: a lost or garbled one costs a repeated check, never an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from hermes_digup.errors import RefusedCopyError
from hermes_digup.publishing.disk import small_file, write_durably
from hermes_digup.publishing.layout import Layout
from hermes_digup.publishing.manifest import DeliveredFile, FileName

_LIMIT_BYTES = 64 * 1024
GENERATION_FILE = "generation.json"

Stamp = tuple[str, int, int, int, int, int]
"""One file in landing as the file system knows it: name, device, inode, size, mtime_ns, ctime_ns."""


class GenerationRecord(BaseModel):
    """One proved copy: which laptop and moment it shows, and the files it was made from."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    id: str
    source: str
    home: str | None = None
    schema_version: int
    taken_at: datetime
    published_at: datetime
    files: Mapping[FileName, DeliveredFile]


class Refusal(BaseModel):
    """A landing that was proved unfit; it is not tried again until it, or this program, changes."""

    model_config = ConfigDict(frozen=True)

    manifest_sha256: str
    stamps: tuple[Stamp, ...]
    generation: str | None = None
    program: str
    reason: str


class StateRecord(BaseModel):
    """The last outcome of publishing one source."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    state: Literal["published", "incomplete", "refused", "retired"]
    reason: str = ""
    note: str = ""
    since: datetime
    retired_manifest_sha256: str | None = None
    refusal: Refusal | None = None


def read_state(layout: Layout) -> StateRecord | None:
    """The last outcome; None when nothing was published yet or the file cannot be understood."""
    try:
        return StateRecord.model_validate_json(small_file(layout.state, _LIMIT_BYTES))
    except (OSError, RefusedCopyError, ValidationError):
        return None


def write_state(layout: Layout, state: StateRecord) -> None:
    """Puts the last outcome in place, as one line."""
    write_durably(layout.state, state.model_dump_json(exclude_none=True).encode() + b"\n")


def read_generation(folder: Path) -> GenerationRecord | None:
    """What a generation says of itself; None when it is not one of ours."""
    try:
        return GenerationRecord.model_validate_json(small_file(folder / GENERATION_FILE, _LIMIT_BYTES))
    except (OSError, RefusedCopyError, ValidationError):
        return None

"""One opened DigUp database with its vectors: answers what ranking and the tools ask, and ranks nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hermes_digup.records import File, FolderFilter, Passage

if TYPE_CHECKING:
    from hermes_digup.records import Vector


class Unfinished(NamedTuple):
    """A long file that DigUp has read only up to a page or piece."""

    path: str
    read_to: int
    read_end: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What an index holds."""

    files_by_kind: dict[str, int]
    files_by_state: dict[str, int]
    segments: int
    vectors: int
    scale_vectors: int
    bad_info_rows: int
    unfinished: list[Unfinished]


class Database:
    """One opened, unchanging DigUp database.

    Threads: safe; each thread gets a connection of its own. Raises: RefusedCopyError when the file turns out damaged.
    """

    path: Path
    is_code: bool
    schema: int
    vector_source: str | None
    vectors_from: str  # "packed" or "rows"
    warnings: tuple[str, ...]

    def __init__(self, path: Path, *, packed: Path | None = None) -> None:
        raise NotImplementedError

    def counts(self) -> Counts:
        raise NotImplementedError

    def file(self, path: str) -> File | None:
        raise NotImplementedError

    def file_by_id(self, number: int) -> File | None:
        raise NotImplementedError

    def segment(self, number: int) -> Passage | None:
        raise NotImplementedError

    def passages(self, file: int) -> list[Passage]:
        raise NotImplementedError

    def browse(
        self,
        *,
        kinds: Collection[str] | None = None,
        folder: FolderFilter | None = None,
        name_contains: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> tuple[list[File], int]:
        raise NotImplementedError

    def samples(self, count: int) -> list[tuple[Passage, File, Vector]]:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

"""All sources of this Pi, each answering from the generation in use.

Between a question and its answer: which copies there are, and which of them can be used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from hermes_digup.errors import DigupError, NoIndexError
from hermes_digup.index import Counts, Database, Shelf, Snapshot

SETUP_HINT = "Set up the laptop: ansible-playbook site.yml"
SYNC_HINT = "Next: ansible-playbook playbooks/sync_now.yml"


@dataclass(frozen=True, slots=True)
class Source:
    """A source's folder, and the name of the machine it is from.

    `problem`: why its newest state is not in use, if whoever fills the folder knows. `arriving`: what a newer
    delivery on its way still lacks, which is no problem. `hint`: what to do while nothing is published.
    """

    folder: Path
    machine: str
    problem: str | None = None
    hint: str = SYNC_HINT
    arriving: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A source that cannot answer. `waiting`: nothing was published yet, or it was retired."""

    machine: str
    sentence: str
    waiting: bool
    hint: str


@dataclass(slots=True)
class Opened:
    """The snapshots one call works on, all held open until it ends, and the sources that have none.

    `stale_after`: the age from which answers mention it. `sources_dir`: where sources are looked for.
    """

    stale_after: timedelta
    sources_dir: Path
    snapshots: list[Snapshot] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    arriving: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Corner:
    """One index of one source: where a question is asked, or a file looked up."""

    snapshot: Snapshot
    database: Database

    @property
    def machine(self) -> str:
        return self.snapshot.machine


class Library:
    """The sources, opened when first needed.

    Threads: any number may open at once.
    """

    def __init__(
        self, list_sources: Callable[[], Sequence[Source]], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._list_sources, self._clock = list_sources, clock
        self._shelves: dict[Path, Shelf] = {}
        self._counts: dict[tuple[Path, str], Counts] = {}
        self._lock = threading.Lock()

    @contextmanager
    def opened(self, stale_after: timedelta, sources_dir: Path) -> Iterator[Opened]:
        """Every usable source's snapshot, kept open until the block ends."""
        result = Opened(stale_after, sources_dir)
        with ExitStack() as stack:
            for source in self._list_sources():
                try:
                    shelf = self._shelf(source)
                    result.snapshots.append(stack.enter_context(shelf.lease()))
                    refused = shelf.refused or source.problem
                    if refused:
                        result.refused[source.machine] = refused
                    if source.arriving:
                        result.arriving[source.machine] = source.arriving
                except DigupError as error:
                    waiting = isinstance(error, NoIndexError) and source.problem is None
                    sentence = source.problem or str(error)
                    result.problems.append(Problem(source.machine, sentence, waiting, source.hint))
            yield result

    def counts(self, corner: Corner) -> Counts:
        """What an index holds; counted once per generation, which never changes."""
        key = (corner.database.path, corner.snapshot.generation)
        with self._lock:
            known = self._counts.get(key)
        if known is None:
            known = corner.database.counts()
            with self._lock:
                if len(self._counts) > 64:
                    self._counts.clear()
                self._counts[key] = known
        return known

    def close(self) -> None:
        with self._lock:
            shelves, self._shelves = list(self._shelves.values()), {}
        for shelf in shelves:
            shelf.close()

    def _shelf(self, source: Source) -> Shelf:
        with self._lock:
            shelf = self._shelves.get(source.folder)
            if shelf is None:
                shelf = self._shelves[source.folder] = Shelf(source.folder, source.machine, clock=self._clock)
            return shelf

"""Copies come and go under a server that is asked all the time: nothing fails, mixes or piles up."""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.doubles.delivery import HOME, SOURCES, deliver
from tests.soak import rounds
from tests.unit.index.index_rows import Rows, direction

from hermes_digup.cli.indexes import delivered
from hermes_digup.ranking import Query, search
from hermes_digup.service import BrowseRequest, FileRequest, SearchRequest, Service
from hermes_digup.settings import load

SWAPS = rounds(20, 200)
WARM_UP = SWAPS // 4
THREADS = 8
FILES = 20
LONGEST_WAIT_S = 60
# Of the full count, the generations after the warm-up would take several times that if their memory stayed.
MOST_GROWTH_BYTES = 8 << 20
MOST_CONNECTIONS = 2 * 4  # that stay open between questions, of two databases


def built(folder: Path, number: int) -> list[Path]:
    """Both indexes, with their number in every text and every path but one."""
    databases = [folder / str(number) / name for name in ("index.sqlite", "code.sqlite")]
    for database in databases:
        kind = "code" if database.name == "code.sqlite" else "doc"
        with Rows(database) as rows:
            for name in ("always", *(f"generation {number}/{each}" for each in range(FILES))):
                file = rows.file(f"{HOME}/{name}.txt", kind)
                for place in range(1, 4):
                    text = f"rent of generation {number}, part {place}"
                    rows.segment(file, place=place, text=text, vector=direction(place))
    return databases


def numbers_in(*texts: str) -> set[str]:
    return {number for text in texts for number in re.findall(r"generation»? «?(\d+)", text)}


class Asker:
    """Asks a service in a thread of its own, each tool in turn, and keeps what went wrong."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.answers, self.newest = 0, 0
        self.faults: list[object] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        questions: list[Callable[[], set[str]]] = [
            self.by_words,
            self.code,
            self.by_meaning,
            self.file,
            self.listing,
        ]
        while not self.stop.is_set():
            for question in questions:
                try:
                    self._note(question())
                except Exception as error:  # noqa: BLE001 - whatever it is, it counts
                    self.faults.append(error)

    def _note(self, numbers: set[str]) -> None:
        self.answers += 1
        if len(numbers) != 1 or int(min(numbers)) < self.newest:
            self.faults.append(numbers)
        else:
            self.newest = int(min(numbers))

    def by_words(self) -> set[str]:
        return self._found(SearchRequest("rent generation"))

    def code(self) -> set[str]:
        return self._found(SearchRequest("rent generation", code=True))

    def _found(self, request: SearchRequest) -> set[str]:
        answer = self.service.search(request)
        assert (answer.status, len(answer.hits)) == ("ok", request.limit), answer
        passage = self.service.read_passage(answer.hits[0].segment_id)
        assert passage.status in ("ok", "index_moved"), passage
        if passage.status == "ok":
            assert numbers_in(passage.text) == numbers_in(answer.hits[0].excerpt or ""), passage
        return numbers_in(answer.model_dump_json())

    def by_meaning(self) -> set[str]:
        with self.service.opened() as opened:
            snapshot = opened.snapshots[0]
            assert snapshot.main.vectors_from == "packed"
            hits = search(snapshot.main, Query("", direction(1), z_gate=0.5)).hits
            assert len(hits) == 20
            return numbers_in(*(hit.excerpt or "" for hit in hits))

    def file(self) -> set[str]:
        answer = self.service.read_file(FileRequest(f"{HOME}/always.txt"))
        assert answer.status == "ok", answer
        return numbers_in(answer.text)

    def listing(self) -> set[str]:
        status = self.service.index_status()
        assert (status.status, status.sources[0].problem) == ("ok", None), status
        answer = self.service.browse_files(BrowseRequest(name_contains=".txt"))
        assert (answer.status, answer.total) == ("ok", FILES + 1), answer
        return numbers_in(*(file.path for file in answer.files))


@contextmanager
def asking(service: Service) -> Iterator[list[Asker]]:
    askers = [Asker(service) for _ in range(THREADS)]
    for asker in askers:
        asker.thread.start()
    try:
        yield askers
    finally:
        for asker in askers:
            asker.stop.set()
        for asker in askers:
            asker.thread.join()


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def held(generations: Path) -> tuple[set[str], int]:
    """The generations that this process has open or mapped, and how many descriptors it has."""
    descriptors = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed by another thread since it was listed
            descriptors.append(str(each.readlink()))
    mapped = Path("/proc/self/maps").read_text()
    inside = re.compile(re.escape(str(generations)) + r"/([^/\s]+)")
    return set(inside.findall("\n".join([*descriptors, mapped]))), len(descriptors)


@pytest.mark.timeout(1800)
def test_swaps_under_load_lose_and_mix_no_answer_and_leave_nothing_behind(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("needs /proc to see memory and open files: run it on Linux")
    home = tmp_path / "pi"

    ready = {number: built(tmp_path / "built", number) for number in range(1, SWAPS + 2)}

    def published(number: int) -> str:
        outcome = deliver(home, "macbook", ready[number], confirmed=datetime.now(timezone.utc))
        assert outcome.state == "published"
        return outcome.generation or ""

    published(1)
    settings = load({"HOME": str(home)})
    # A clock that runs fast: the server looks for a newer copy fifty times a second.
    service = Service(
        settings,
        environ={"HOME": str(home)},
        sources=lambda: delivered(settings.sources_dir),
        clock=lambda: 50 * time.monotonic(),
    )
    threads = threading.active_count()
    warm = (0, 0)
    with asking(service) as askers:
        for number in range(2, SWAPS + 2):
            last = published(number)
            give_up = time.monotonic() + LONGEST_WAIT_S
            while any(asker.newest < number for asker in askers) and not any(
                asker.faults for asker in askers
            ):
                assert time.monotonic() < give_up, "a copy is not followed"
                time.sleep(0.005)
            if number == WARM_UP:
                warm = resident_bytes(), held(home)[1]
    grown = resident_bytes() - warm[0]
    open_generations, descriptors = held(home / SOURCES / "macbook" / "generations")
    answers = sum(asker.answers for asker in askers)
    print(f"{SWAPS} swaps, {answers} answers, {grown:+,} bytes, {descriptors} open files")

    assert [fault for asker in askers for fault in asker.faults] == []
    assert answers > SWAPS * THREADS
    assert open_generations == {last}
    assert descriptors <= warm[1] + MOST_CONNECTIONS
    assert threading.active_count() == threads
    assert grown < MOST_GROWTH_BYTES
    service.close()
    assert held(home / SOURCES / "macbook" / "generations")[0] == set()

"""Random damage with a manifest that matches it: refused, or published and every tool ends well."""

from __future__ import annotations

import itertools
import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.integration.publishing.deliveries import Laptop, mark_in_use, sample
from tests.soak import rounds

from hermes_digup.errors import DigupError
from hermes_digup.index import Snapshot
from hermes_digup.mcp_server.texts import text_of
from hermes_digup.publishing import publish, source_status
from hermes_digup.ranking import Query, search
from hermes_digup.service import (
    CALL_S,
    Answer,
    BrowseAnswer,
    BrowseRequest,
    FileRequest,
    SearchAnswer,
    SearchRequest,
    Service,
    Source,
)
from hermes_digup.settings import load

ROUNDS = rounds(12, 1000)  # of main indexes, and as many of code indexes; another sample every time
QUESTIONS = ("report", "invoice 2024", "retryPolicy", "the of a in")


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Flips bits, writes noise or zeros over a stretch, swaps pages, cuts off or repeats the end."""
    content = bytearray(data)
    place = chance.randrange(len(content))
    match chance.randrange(6):
        case 0:
            for _ in range(chance.randrange(1, 9)):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        case 1:
            content[place : place + 64] = chance.randbytes(min(64, len(content) - place))
        case 2:
            content[place : place + 4096] = bytes(min(4096, len(content) - place))
        case 3:
            one, other = (chance.randrange(len(content) // 4096) * 4096 for _ in range(2))
            content[one : one + 4096], content[other : other + 4096] = (
                content[other : other + 4096],
                content[one : one + 4096],
            )
        case 4:
            del content[place // 4096 * 4096 :]
        case _:
            # The header and the first page's schema: what the damage can reach most with.
            for _ in range(chance.randrange(1, 4)):
                content[chance.randrange(4096)] = chance.randrange(256)
    return bytes(content)


@contextmanager
def served(source: Path, home: Path) -> Iterator[Service]:
    """A server's whole inside over one source; it looks for a newer copy at every call."""
    environ = {"HOME": str(home)}
    service = Service(
        load(environ),
        environ=environ,
        sources=lambda: [Source(source, "macbook")],
        clock=itertools.count(0.0, 2.0).__next__,
    )
    try:
        yield service
    finally:
        service.close()


class Tools:
    """A service's six tools, asked as an agent does: each ends in time, in an answer or in a named fault."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.seen: set[str] = set()

    def use_all(self) -> None:
        service = self._service
        self._ask(service.index_status)
        for text in QUESTIONS:
            for code in (False, True):
                found = self._ask(lambda: service.search(SearchRequest(text, code=code)))  # noqa: B023 - called at once, within the same round
                if isinstance(found, SearchAnswer):
                    for hit in found.hits[:3]:
                        self._read(hit.segment_id, hit.path)
        listed = self._ask(lambda: service.browse_files(BrowseRequest()))
        if isinstance(listed, BrowseAnswer):
            for file in listed.files[:3]:
                self._read("macbook:1:0000000000", file.path)

    def _read(self, segment_id: str, path: str) -> None:
        self._ask(lambda: self._service.read_passage(segment_id, context=1))
        self._ask(lambda: self._service.read_file(FileRequest(path)))

    def _ask(self, question: Callable[[], Answer]) -> Answer | None:
        began = time.monotonic()
        answer = None
        # Damage that no check can see may be in use now: a named fault is an answer, a crash is not.
        with suppress(DigupError):
            answer = question()
            assert text_of(answer)
            self.seen.add(f"{type(answer).__name__} {answer.status}")
        assert time.monotonic() - began < 2 * CALL_S
        return answer


def ask_by_meaning(snapshot: Snapshot) -> None:
    """What a service does once it has a query's vector, and what the doctor reads."""
    vector = np.full(768, 768**-0.5, np.float32)
    for database in filter(None, (snapshot.main, snapshot.code)):
        with suppress(DigupError):
            database.samples(5)
        for text in QUESTIONS:
            with suppress(DigupError):
                search(database, Query(text=text, vector=vector))


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("code", [False, True])
def test_damage_is_refused_or_survived(code: bool, tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(64)
    logging.getLogger(__name__).warning("seed %d", seed)  # shown when the test fails
    chance = random.Random(seed)
    laptop = Laptop(tmp_path / "macbook")
    laptop.deliver(sample(), sample("code"))
    publish(laptop.source)
    states: list[str] = []
    with served(laptop.source, tmp_path) as service:
        tools = Tools(service)
        tools.use_all()
        sound = set(tools.seen)
        for number in range(ROUNDS):
            main, other = sample(), sample("code") if code else None
            if other is None:
                main = damaged(main, chance)
            else:
                other = damaged(other, chance)
            laptop.deliver(main, other)

            outcome = publish(laptop.source)

            states.append(outcome.state)
            assert outcome.state in {"published", "unchanged", "refused"}, f"seed {seed}, round {number}"
            assert source_status(laptop.source).state in {"published", "refused"}
            tools.use_all()
            with service.opened() as opened:
                for snapshot in opened.snapshots:
                    ask_by_meaning(snapshot)
        laptop.deliver(sample(mark="2"), sample("code"))
        publish(laptop.source)
        assert mark_in_use(laptop.source) == "2"
        tools.seen.clear()
        tools.use_all()
        assert tools.seen == sound, "the server is as well as before"
    assert {"SearchAnswer ok", "PassageAnswer ok", "FileAnswer ok", "BrowseAnswer ok"} <= sound
    assert "StatusAnswer ok" in sound
    assert "refused" in states
    print({state: states.count(state) for state in set(states)})

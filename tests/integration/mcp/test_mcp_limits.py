"""Calls end: when their time is over, and when nobody waits for them any more."""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from tests.doubles.delivery import SOURCES, deliver

from hermes_digup.cli.indexes import opened_service
from hermes_digup.embedding import Deadline, EmbeddingClient
from hermes_digup.embedding.client import TOTAL_S
from hermes_digup.embedding.door import GRACE_S
from hermes_digup.errors import RefusedCopyError
from hermes_digup.mcp_server import build_server
from hermes_digup.service import BrowseRequest, Call, SearchAnswer, SearchRequest, Service, StatusAnswer
from hermes_digup.service.call import CALL_S, RESERVE_S
from hermes_digup.service.library import Opened
from hermes_digup.settings import Settings, load

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def service(pi: Path) -> Iterator[Service]:
    given = {"HOME": str(pi)}
    with opened_service(load(given), given, keep_looking=True) as opened:
        yield opened


def over() -> Call:
    call = Call()
    call.cancelled.set()
    return call


class Endless:
    """A service whose search goes on until its call is over, and whose status finds damage."""

    def __init__(self) -> None:
        self.began, self.ended = threading.Event(), threading.Event()

    def search(self, request: SearchRequest, call: Call) -> SearchAnswer:
        self.began.set()
        while not call.is_over():
            call.cancelled.wait(0.05)
        self.ended.set()
        return SearchAnswer(status="ok")

    def read_passage(self, segment_id: str, *, context: int, call: Call) -> Any:
        raise ValueError("a secret of the inside")

    def browse_files(self, request: BrowseRequest, call: Call) -> Any:
        raise RefusedCopyError(
            "index.sqlite cannot be read", where="macbook", fix="Next: hermes-digup status"
        )

    def index_status(self, call: Call) -> StatusAnswer:
        raise RefusedCopyError(
            "index.sqlite cannot be read", where="macbook", fix="Next: hermes-digup status"
        )


@contextmanager
def stopped_in_time(endless: Endless) -> Iterator[None]:
    yield
    assert endless.ended.wait(10)


def test_a_search_whose_time_is_over_says_so(service) -> None:
    answer = service.search(SearchRequest("invoice"), over())

    assert answer.status == "timed_out"
    assert answer.message


def test_a_listing_whose_time_is_over_ends_inside_its_query(service) -> None:
    late = Call(deadline=Deadline(0))

    assert service.search(SearchRequest("invoice"), late).status == "timed_out"


async def test_a_cancelled_call_stops_its_thread() -> None:
    endless = Endless()

    with stopped_in_time(endless):
        async with Client(build_server(endless, results="both")) as client:
            with anyio.move_on_after(0.5):
                await client.call_tool("search_files", {"query": "x"})
            assert endless.began.is_set()


async def test_a_real_fault_is_an_error_that_tells_nothing_of_the_inside() -> None:
    async with Client(build_server(Endless(), results="both")) as client:
        crash = await client.call_tool("read_passage", {"segment_id": "x"})
        damage = await client.call_tool("browse_files", {})

    assert crash.is_error
    assert damage.is_error
    assert "secret" not in crash.content[0].text
    assert "hermes-digup doctor" in crash.content[0].text
    assert "index.sqlite cannot be read" in damage.content[0].text


async def test_index_status_is_never_an_error() -> None:
    async with Client(build_server(Endless(), results="both")) as client:
        result = await client.call_tool("index_status", {})

    assert not result.is_error
    assert "index.sqlite cannot be read" in result.content[0].text


@pytest.fixture
def black_hole() -> Iterator[str]:
    """An address at which connections are neither accepted nor refused."""
    with ExitStack() as held:
        hole = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(hole.getsockname())
        yield f"http://127.0.0.1:{hole.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """An address at which everybody is let in and nobody answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def _impatient(monkeypatch) -> None:
    """The embedding client with a tenth of its limits."""

    def made(settings: Settings) -> EmbeddingClient:
        return EmbeddingClient(settings.embed_urls, model="x", connect_s=0.3, timeout_s=0.8)

    monkeypatch.setattr("hermes_digup.service.service.embedding_client", made)
    monkeypatch.setattr("hermes_digup.embedding.client.TOTAL_S", 1.2)


def test_a_search_has_time_left_when_every_embedding_server_used_its_own() -> None:
    assert TOTAL_S + GRACE_S <= CALL_S - RESERVE_S - 1
    assert CALL_S <= 15


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("kind", ["black_hole", "silent"])
async def test_servers_that_never_answer_leave_words_in_time(pi, serve, request, kind: str) -> None:
    address = request.getfixturevalue(kind)
    addresses = ",".join(f"{address}/{number}" for number in range(20))
    async with serve(pi, DIGUP_EMBED_URL=addresses) as client:
        began = time.monotonic()
        first = (await client.call_tool("search_files", {"query": "INV-2026-0042"})).structured_content
        took_s = time.monotonic() - began
        others = [await client.call_tool(tool, {}) for tool in ("index_status", "browse_files")]

    warning = next(each for each in first["warnings"] if each["code"] == "words_only")
    assert took_s < 4
    assert first["hits"]
    assert (warning["cause"], bool(warning["since"])) == ("unreachable", True)
    assert not any(each.is_error for each in others)


async def test_a_call_that_hangs_is_answered_in_time(monkeypatch) -> None:
    released = threading.Event()

    class Stuck(Endless):
        """A service that looks at nothing, as a library in the middle of its work."""

        def search(self, request: SearchRequest, call: Call) -> SearchAnswer:
            released.wait(20)
            return SearchAnswer(status="ok")

    monkeypatch.setattr("hermes_digup.mcp_server.server.CALL_S", 0.3)
    async with Client(build_server(Stuck(), results="both")) as client:
        began = time.monotonic()
        answers = [await client.call_tool("search_files", {"query": "x"}) for _ in range(6)]
        took_s = time.monotonic() - began
        released.set()

    assert [each.structured_content["status"] for each in answers] == ["timed_out"] * 6
    assert not any(each.is_error for each in answers)
    assert took_s < 6


def test_a_query_that_would_run_for_ever_is_ended(service, monkeypatch) -> None:
    def endless(opened: Opened, _request: BrowseRequest) -> None:
        counting = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
        with opened.snapshots[0].main._connections.one() as connection:
            connection.execute(counting).fetchone()

    monkeypatch.setattr("hermes_digup.service.service.browse_files", endless)
    began = time.monotonic()

    answer = service.browse_files(BrowseRequest(), Call(deadline=Deadline(0.3)))

    assert answer.status == "timed_out"
    assert time.monotonic() - began < 3


def test_an_index_that_somebody_locked_answers_all_the_same(databases, tmp_path) -> None:
    assert deliver(tmp_path, "macbook", databases, confirmed=datetime.now(timezone.utc)).state == "published"
    index = tmp_path / SOURCES / "macbook" / "current" / "index.sqlite"
    given = {"HOME": str(tmp_path)}
    with closing(sqlite3.connect(index.resolve(), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with opened_service(load(given), given, keep_looking=False) as service:
            answer = service.search(SearchRequest("INV-2026-0042"), Call(deadline=Deadline(3)))

    assert answer.status == "ok"


def test_the_laptops_own_folder_is_a_source_and_stays_untouched(databases, tmp_path) -> None:
    folder = databases[0].parent
    before = sorted((each.name, each.stat().st_mtime_ns) for each in folder.iterdir())
    given = {"HOME": str(tmp_path), "DIGUP_INDEX_DIR": str(folder)}

    with opened_service(load(given), given, keep_looking=False) as live:
        answer = live.search(SearchRequest("INV-2026-0042"))

    assert answer.hits[0].path.endswith("Invoice Brightwater Design.pdf")
    assert sorted((each.name, each.stat().st_mtime_ns) for each in folder.iterdir()) == before

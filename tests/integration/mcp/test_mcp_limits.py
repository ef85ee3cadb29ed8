"""Calls end: when their time is over, and when nobody waits for them any more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from hermes_digup.cli.indexes import opened_service
from hermes_digup.embedding import Deadline
from hermes_digup.errors import RefusedCopyError
from hermes_digup.mcp_server import build_server
from hermes_digup.service import BrowseRequest, Call, SearchAnswer, SearchRequest, Service, StatusAnswer
from hermes_digup.settings import load

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


def test_the_laptops_own_folder_is_a_source_and_stays_untouched(databases, tmp_path) -> None:
    folder = databases[0].parent
    before = sorted((each.name, each.stat().st_mtime_ns) for each in folder.iterdir())
    given = {"HOME": str(tmp_path), "DIGUP_INDEX_DIR": str(folder)}

    with opened_service(load(given), given, keep_looking=False) as live:
        answer = live.search(SearchRequest("INV-2026-0042"))

    assert answer.hits[0].path.endswith("Invoice Brightwater Design.pdf")
    assert sorted((each.name, each.stat().st_mtime_ns) for each in folder.iterdir()) == before

"""A Pi with a delivered source; the server in this process, and as a process of its own over real pipes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from tests.doubles.delivery import deliver
from tests.integration.mcp.serving import parameters

from hermes_digup.cli.indexes import opened_service
from hermes_digup.mcp_server import build_server
from hermes_digup.settings import load

Serve = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def old_pi(databases: list[Path], tmp_path) -> Path:
    """A Pi whose only source has no code index and was last confirmed three days ago."""
    confirmed = datetime.now(timezone.utc) - timedelta(days=3)
    assert deliver(tmp_path, "macbook", databases[:1], confirmed=confirmed).state == "published"
    return tmp_path


@pytest.fixture
def serve() -> Serve:
    """Connects the official client to a server in this process, for a home folder."""

    @asynccontextmanager
    async def started(home: Path, results: str = "both", **environ: str) -> AsyncIterator[Client]:
        given = {"HOME": str(home), **environ}
        with opened_service(load(given), given, keep_looking=True) as service:
            async with Client(build_server(service, results=results)) as client:
                yield client

    return started


@pytest.fixture
def serve_piped() -> Serve:
    """Starts the server as Hermes does, and connects the official client to its pipes."""

    @asynccontextmanager
    async def started(home: Path, *options: str, mode: str = "auto", **environ: str) -> AsyncIterator[Client]:
        async with Client(stdio_client(parameters(home, *options, **environ)), mode=mode) as client:
            yield client

    return started

"""A Pi with a delivered source, and the real server over real pipes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from tests.doubles.delivery import build_index, deliver
from tests.integration.mcp.serving import parameters

Serve = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="session")
def databases(tmp_path_factory) -> list[Path]:
    """DigUp's databases of the sample files."""
    return build_index(tmp_path_factory.mktemp("digup"))


@pytest.fixture(scope="session")
def pi(databases: list[Path], tmp_path_factory) -> Path:
    """The home folder of a Pi that has one source, macbook, with both indexes."""
    home = tmp_path_factory.mktemp("pi")
    assert deliver(home, "macbook", databases, confirmed=datetime.now(timezone.utc)).state == "published"
    return home


@pytest.fixture
def old_pi(databases: list[Path], tmp_path) -> Path:
    """A Pi whose only source has no code index and was last confirmed three days ago."""
    confirmed = datetime.now(timezone.utc) - timedelta(days=3)
    assert deliver(tmp_path, "macbook", databases[:1], confirmed=confirmed).state == "published"
    return tmp_path


@pytest.fixture
def serve() -> Serve:
    """Starts the server for a home folder and connects the official client."""

    @asynccontextmanager
    async def started(home: Path, *options: str, mode: str = "auto", **environ: str) -> AsyncIterator[Client]:
        async with Client(stdio_client(parameters(home, *options, **environ)), mode=mode) as client:
            yield client

    return started

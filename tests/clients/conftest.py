"""A Pi with the sample files, the server's command, and the clients that are not ours."""

from __future__ import annotations

import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from tests.clients import environments
from tests.clients.serving import TOKEN, Pi
from tests.doubles.delivery import build_index, deliver

from hermes_digup.mcp_server import build_server
from hermes_digup.service import Service
from hermes_digup.settings import load

STARTED_WITHIN_S = 30


@pytest.fixture(scope="session")
def pi(tmp_path_factory) -> Pi:
    home = tmp_path_factory.mktemp("pi")
    databases = build_index(tmp_path_factory.mktemp("digup"))
    assert deliver(home, "macbook", databases, confirmed=datetime.now(timezone.utc)).state == "published"
    command = Path(sysconfig.get_path("scripts")) / "hermes-digup"
    assert command.exists(), "install the project first: make test"
    return Pi(home, str(command))


@pytest.fixture(scope="session")
def tool_list() -> list[dict[str, Any]]:
    """What `tools/list` answers, dumped."""
    environ = {"HOME": "/nowhere"}

    async def listed() -> list[dict[str, Any]]:
        service = Service(load(environ), environ=environ, sources=lambda: [])
        async with Client(build_server(service, results="both")) as client:
            tools = (await client.list_tools()).tools
            return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]

    return anyio.run(listed)


@pytest.fixture
def http_url(pi: Pi) -> Iterator[str]:
    """The Pi's server over HTTP, on loopback and with a token."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serve = [pi.command, "serve", "--http", "--port", str(port)]
    with subprocess.Popen(serve, env={**pi.environ, "DIGUP_HTTP_TOKEN": TOKEN}) as process:
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def hermes() -> Path:
    """The `bin` folder of Hermes Agent."""
    return environments.python_client("hermes-agent")


@pytest.fixture(scope="session")
def former_sdk() -> Path:
    """The `bin` folder of the official client that Hermes pins."""
    return environments.python_client("mcp")


@pytest.fixture(scope="session")
def inspector() -> Path:
    """The command of MCP Inspector."""
    return environments.inspector()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTED_WITHIN_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended by itself"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not listen")

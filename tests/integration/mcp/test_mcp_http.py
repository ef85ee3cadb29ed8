"""The server over HTTP: one token, one address, and nothing for strangers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import httpx
import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import SecretStr

from hermes_digup.cli.indexes import opened_service
from hermes_digup.errors import SettingsError
from hermes_digup.mcp_server import HttpAddress, build_server, serve_http
from hermes_digup.mcp_server.http import guarded_app
from hermes_digup.settings import load

TOKEN = "planted-token-0123456789"
ASK = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
TYPES = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
KNOWN = {**TYPES, "Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def url(pi) -> Iterator[str]:
    """A served Pi on loopback, with a token."""
    given = {"HOME": str(pi)}
    with opened_service(load(given), given, keep_looking=True) as service:
        bound = socket.create_server(("127.0.0.1", 0))
        address = HttpAddress(port=bound.getsockname()[1])
        app = guarded_app(build_server(service, results="both"), address, SecretStr(TOKEN))
        running = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 30
        while not running.started and time.monotonic() < deadline:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{address.port}/mcp"
        running.should_exit = True
        thread.join(10)


def test_the_tools_are_listed_for_who_has_the_token(url) -> None:
    answer = httpx.post(url, json=ASK, headers=KNOWN)

    assert answer.status_code == 200
    assert len(answer.json()["result"]["tools"]) == 6


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (TYPES, 401),
        ({**TYPES, "Authorization": "Bearer wrong"}, 401),
        ({**TYPES, "Authorization": TOKEN}, 401),
        ({**KNOWN, "Host": "evil.example"}, 421),
        ({**KNOWN, "Origin": "http://evil.example"}, 403),
    ],
)
def test_a_stranger_is_refused(url, headers: dict[str, str], status: int) -> None:
    answer = httpx.post(url, json=ASK, headers=headers)

    assert answer.status_code == status
    assert TOKEN not in answer.text


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT"])
def test_only_post_is_answered_and_at_once(url, method: str) -> None:
    assert httpx.request(method, url, headers=KNOWN, timeout=10).status_code == 405


def test_a_large_body_is_refused(url) -> None:
    body = {**ASK, "params": {"filler": "x" * (2 << 20)}}

    assert httpx.post(url, json=body, headers=KNOWN).status_code == 413


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.anyio
async def test_the_official_client_gets_answers(url, mode: str, anyio_backend) -> None:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        result = await client.call_tool("search_files", {"query": "invoice"})

    assert result.structured_content["hits"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("address", "token", "named"),
    [
        (HttpAddress("0.0.0.0"), TOKEN, "--anywhere"),
        (HttpAddress("::"), TOKEN, "--anywhere"),
        (HttpAddress("100.64.0.7"), None, "DIGUP_HTTP_TOKEN"),
        (HttpAddress("100.64.0.7"), "short", "DIGUP_HTTP_TOKEN"),
        (HttpAddress("0.0.0.0", anywhere=True), None, "DIGUP_HTTP_TOKEN"),
    ],
)
def test_an_address_that_lets_strangers_in_is_refused(address, token: str | None, named: str) -> None:
    server = build_server(None, results="both")  # type: ignore[arg-type] - nothing is asked

    with pytest.raises(SettingsError, match=named):
        guarded_app(server, address, SecretStr(token) if token else None)


def test_a_port_that_is_taken_is_said_in_a_sentence() -> None:
    server = build_server(None, results="both")  # type: ignore[arg-type] - nothing is asked

    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = HttpAddress(port=taken.getsockname()[1])
        with pytest.raises(SettingsError, match="Cannot listen"):
            serve_http(server, address, None, log_level="ERROR")

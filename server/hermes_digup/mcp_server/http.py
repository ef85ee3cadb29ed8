"""The server over HTTP, for a Hermes on another machine: stateless, one token, one address of the tailnet."""

from __future__ import annotations

import hmac
import ipaddress
import json
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import SecretStr

from hermes_digup.errors import SettingsError

PATH = "/mcp"
LARGEST_BODY_BYTES = 1 << 20
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SHORTEST_TOKEN = 20

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """Where to listen.

    `anywhere`: all addresses of this machine may be meant. `names`: further Host names that people type.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    anywhere: bool = False
    names: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK_NAMES

    @property
    def is_everything(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False


def serve_http(server: Server[Any], address: HttpAddress, token: SecretStr | None, *, log_level: str) -> None:
    """Serves until a signal ends it.

    Raises: SettingsError when the address or the token would let strangers in, or the address is not there.
    """
    app = guarded_app(server, address, token)
    bound = _bound(address)
    config = uvicorn.Config(app, log_level=log_level.lower(), timeout_graceful_shutdown=3, lifespan="on")
    uvicorn.Server(config).run(sockets=[bound])


def guarded_app(server: Server[Any], address: HttpAddress, token: SecretStr | None) -> App:
    """The ASGI application: the SDK's, behind a door that checks method, token and size.

    Raises: SettingsError as `serve_http`.
    """
    if address.is_everything and not address.anywhere:
        raise SettingsError(
            f"--host {address.host} means every network of this machine",
            fix="Name the tailnet address, or add --anywhere if this is meant.",
        )
    secret = token.get_secret_value() if token else ""
    if not address.is_loopback and len(secret) < SHORTEST_TOKEN:
        raise SettingsError(
            f"Serving beyond this machine needs a token of at least {SHORTEST_TOKEN} characters",
            where="DIGUP_HTTP_TOKEN",
            fix="Make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    security = TransportSecuritySettings(allowed_hosts=_hosts(address), allowed_origins=[])
    inner = server.streamable_http_app(
        host=address.host,
        transport_security=security,
        stateless_http=True,
        json_response=True,
        streamable_http_path=PATH,
        max_request_body_size=LARGEST_BODY_BYTES,
    )
    return _door(inner, secret)


def _hosts(address: HttpAddress) -> list[str]:
    names = [*LOOPBACK_NAMES, *address.names]
    if not address.is_everything:
        names.append(address.host)
    shown = [f"[{name}]" if ":" in name else name for name in names]
    return [f"{name}:{address.port}" for name in shown]


def _door(inner: App, secret: str) -> App:
    expected = b"Bearer " + secret.encode()

    async def door(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        if secret and not hmac.compare_digest(given, expected):
            await _refuse(
                send, 401, "Give the token as 'Authorization: Bearer …'.", (b"www-authenticate", b"Bearer")
            )
        elif scope["path"] == PATH and scope["method"] != "POST":
            await _refuse(send, 405, "Only POST is answered here.", (b"allow", b"POST"))
        else:
            await inner(scope, receive, send)

    return door


async def _refuse(send: Send, status: int, sentence: str, header: tuple[bytes, bytes]) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), header]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _bound(address: HttpAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise SettingsError(
            f"Cannot listen: {error.strerror or error}",
            where=f"{address.host}:{address.port}",
            fix="Is the tailnet up, and is the port free?",
        ) from error
    return bound

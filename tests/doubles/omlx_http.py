"""The HTTP face of the oMLX double: connections, keys and cookies, two shapes of errors, chunked answers."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.doubles import omlx_embeddings
from tests.doubles.omlx_call import Call
from tests.doubles.omlx_downloads import Refused
from tests.doubles.omlx_routes import route

if TYPE_CHECKING:
    from tests.doubles.omlx import OmlxDouble

TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
COOKIE = "omlx_admin_session"


class Listener(ThreadingHTTPServer):
    """One bound address."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, double: OmlxDouble, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.double = double
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__((host, port), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def cut_connections(self) -> None:
        """A process that ends leaves no half-answered client waiting."""
        with self._guard:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Listener
    timeout = 60

    def log_message(self, *_: object) -> None:
        """Nothing: paths hold keys in no case, but bodies might."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = urlsplit(self.path).path
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.double.requests.append((self.command, path))
        try:
            handler, guard, values = route(self.command, path)
            call = Call(self.server.double, values, self._cookie(), self._key())
            self._guarded(guard, call)
            call.body = self._json(raw, path)
            self.server.double.sent += [(path, call.body)] if raw else []
            if handler is None:
                self._embeddings(call)
            else:
                status, content = handler(call)
                self._send(status, content, call.headers)
        except Refused as refused:
            self._refuse(path, refused)

    def _guarded(self, guard: str, call: Call) -> None:
        state = call.state
        with state.lock:
            open_to_all = state.settings["auth"]["skip_api_key_verification"]
            admin = open_to_all or state.is_session(call.cookie)
            if guard == "key" and not state.accepts(call.key):
                raise Refused(401, "Invalid API key" if call.key else "API key required")
            if guard == "admin" and not admin:
                raise Refused(401, "Admin authentication required")
            if guard == "admin-or-key" and not admin and not (call.key and state.accepts(call.key)):
                raise Refused(401, "Admin authentication required")

    def _cookie(self) -> str:
        pairs = (part.strip().partition("=") for part in self.headers.get("Cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == COOKIE), "")

    def _key(self) -> str:
        scheme, _, key = self.headers.get("Authorization", "").partition(" ")
        return key.strip() if scheme.lower() == "bearer" else self.headers.get("x-api-key", "")

    def _json(self, raw: bytes, path: str) -> dict[str, Any]:
        if not raw:
            return {}
        if "json" not in self.headers.get("Content-Type", "application/json") and path.startswith("/admin"):
            raise Refused(500, "Internal server error")
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise Refused(
                422, [{"type": "json_invalid", "loc": ["body"], "msg": "JSON decode error"}]
            ) from error
        if not isinstance(body, dict):
            raise Refused(422, [{"type": "model_attributes_type", "loc": ["body"], "msg": "not an object"}])
        return body

    def _refuse(self, path: str, refused: Refused) -> None:
        detail = refused.detail
        if (
            refused.status == 401
            and path.startswith("/admin")
            and "text/html" in self.headers.get("Accept", "")
        ):
            return self._send(302, None, {"Location": "/admin"})
        router = detail in ("Not Found", "Method Not Allowed")
        if path.startswith(("/v1/", "/api/status")) and not router:
            kind = TYPES.get(
                refused.status, "server_error" if refused.status >= 500 else "invalid_request_error"
            )
            text = detail if isinstance(detail, str) else str(detail[0]["msg"])
            param = "input" if refused.status == 422 else None
            return self._send(
                refused.status, {"error": {"message": text, "type": kind, "param": param, "code": None}}, {}
            )
        return self._send(refused.status, {"detail": detail}, {})

    def _send(self, status: int, content: Any, headers: dict[str, str]) -> None:
        whole = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(whole)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(whole)

    def _embeddings(self, call: Call) -> None:
        double = call.double
        fault = double.fault
        if fault == "redirect":
            return self._send(307, None, {"Location": "/v1/embeddings/"})
        content = omlx_embeddings.answer(call.state, double.model, call.body, fault)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with call.state.in_use(call.body["model"]):
            for part in filter(None, omlx_embeddings.body(content, fault, double.slow_s)):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
        if fault == "spaces-then-cut":
            self.close_connection = True
            return None
        self.wfile.write(b"0\r\n\r\n")
        return None

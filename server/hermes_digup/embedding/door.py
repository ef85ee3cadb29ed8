"""The one door to the network: a request goes out, a whole answer or one of our faults comes back in time.

httpx's time-outs bound single steps, not name look-ups and not a server that drips. So each exchange runs in
a thread of its own, and whoever asked waits no longer than it said.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from hermes_digup.embedding.deadline import Deadline
from hermes_digup.embedding.refusals import Reply
from hermes_digup.errors import BadVectorsError, EmbeddingError, RefusedKeyError, UnreachableError

LARGEST_ANSWER_BYTES = 16 * 1024 * 1024
GRACE_S = 0.2  # httpx notices its own time-outs a little later than they are set
NAME = "Correct it in DIGUP_EMBED_URL, or see that Tailscale is up here."
SECURE = "See whether DIGUP_EMBED_URL should begin with http:// instead."
CHECK = "Wake that host, start its server, and see that Tailscale is up on both."


@dataclass(frozen=True, slots=True)
class Question:
    """One request. `content` is a JSON body, None for a GET. `key` goes into a header and nowhere else."""

    path: str
    content: bytes | None
    key: str | None


@dataclass(slots=True)
class _Exchange:
    """What the thread at work tells the one that waits."""

    connected: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    reply: Reply | None = None
    error: Exception | None = None

    def trace(self, name: str, _info: object) -> None:
        if name.endswith("send_request_headers.started"):
            self.connected.set()


class _UnwantedError(Exception):
    """An answer that is not read to its end. The message says why."""


class Door:
    """One address of the model server.

    Threads: any number may ask at once.
    """

    def __init__(
        self, url: str, *, connect_s: float, timeout_s: float, transport: httpx.BaseTransport | None
    ) -> None:
        self._url, self._connect_s, self._timeout_s = url.rstrip("/"), connect_s, timeout_s
        self._transport = transport
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def ask(self, question: Question, deadline: Deadline) -> Reply:
        """One exchange; once more when a connection that was kept open turns out to be dead.

        Raises: UnreachableError, BadVectorsError (an answer of endless size), RefusedKeyError (a key that no
        header can carry).
        """
        if question.key is not None and not (question.key.isascii() and question.key.isprintable()):
            raise RefusedKeyError(
                "The key has characters that cannot be sent", fix="Check DIGUP_EMBED_API_KEY in config.env."
            )
        exchange = self._exchanged(question, deadline)
        if isinstance(exchange.error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError):
            exchange = self._exchanged(question, deadline)
        if exchange.reply is None:
            # Not chained: httpx may quote a header, and with it the key.
            raise self._translated(exchange.error) from None
        return exchange.reply

    def close(self) -> None:
        """Closes kept connections; a later question opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _exchanged(self, question: Question, deadline: Deadline) -> _Exchange:
        exchange = _Exchange()
        work = threading.Thread(target=self._work, args=(question, exchange), name="embedding", daemon=True)
        work.start()
        if not exchange.connected.wait(min(self._connect_s + GRACE_S, deadline.remaining_s())):
            self.close()
            raise self._away(f"did not accept a connection within {self._connect_s:g} s")
        if not exchange.done.wait(min(self._timeout_s + GRACE_S, deadline.remaining_s())):
            self.close()
            raise self._away("did not answer in time")
        return exchange

    def _work(self, question: Question, exchange: _Exchange) -> None:
        try:
            exchange.reply = self._reply(question, exchange)
        except Exception as error:  # noqa: BLE001 - it is handed to the thread that waits
            exchange.error = error
        finally:
            exchange.connected.set()
            exchange.done.set()

    def _reply(self, question: Question, exchange: _Exchange) -> Reply:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if question.key:
            headers["Authorization"] = f"Bearer {question.key}"
        if question.content is not None:
            headers["Content-Type"] = "application/json"
        with self._opened().stream(
            "GET" if question.content is None else "POST",
            self._url + question.path,
            content=question.content,
            headers=headers,
            extensions={"trace": exchange.trace},
        ) as response:
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise _UnwantedError("is compressed, which was not asked for")
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > LARGEST_ANSWER_BYTES:
                    raise _UnwantedError("has no end")
            return Reply(response.status_code, bytes(body))

    def _opened(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                self._client = httpx.Client(
                    timeout=httpx.Timeout(self._timeout_s, connect=self._connect_s),
                    # Reading all certificate authorities takes a while, and plain http needs none.
                    verify=self._url.lower().startswith("https:"),
                    trust_env=False,
                    follow_redirects=False,
                    transport=self._transport,
                )
            return self._client

    def _away(self, what: str, fix: str = CHECK) -> UnreachableError:
        return UnreachableError(f"The model server {what}", where=shown(self._url), fix=fix)

    def _translated(self, error: Exception | None) -> EmbeddingError:
        if isinstance(error, _UnwantedError):
            return BadVectorsError(f"The model server's answer {error}", where=shown(self._url), fix=CHECK)
        if isinstance(error, httpx.ConnectTimeout):
            return self._away(f"did not accept a connection within {self._connect_s:g} s")
        if isinstance(error, httpx.TimeoutException):
            return self._away("did not answer in time")
        if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL):
            return UnreachableError(
                "This is no http address", where=shown(self._url), fix="Check DIGUP_EMBED_URL in config.env."
            )
        if isinstance(error, httpx.ConnectError):
            return self._away(*_why_not_connected(error))
        return self._away("broke off the connection")


def shown(url: str) -> str:
    """An address for people: without user, password and query."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path}"


def _why_not_connected(error: BaseException) -> tuple[str, str]:
    """What went wrong, and what helps."""
    causes: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 8:
        causes.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    if "ConnectionRefusedError" in causes:
        return "refuses connections: nothing listens at this address", CHECK
    if "gaierror" in causes:
        return "has a name that is not known on this network", NAME
    if any("SSL" in name for name in causes):
        return "could not agree on a secure connection", SECURE
    return "cannot be reached from here", CHECK

"""Every way in which a model server fails, over real sockets: which fault it is, and in what time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from tests.doubles.model import HashedWords
from tests.doubles.omlx import OmlxDouble

from hermes_digup.embedding import Deadline, EmbeddingClient
from hermes_digup.errors import (
    BadVectorsError,
    EmbeddingError,
    LoadingError,
    RefusedKeyError,
    UnreachableError,
    WrongModelError,
)

KEY, GEMMA = "sk-planted-secret-42", "google/embeddinggemma-2"
QUIET = "embeddinggemma-2"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OmlxDouble]:
    with OmlxDouble(tmp_path / "base", api_key="main-key-1") as double:
        double.add_sub_key(KEY)
        double.add_model(GEMMA)
        double.slow_s = 0.3
        yield double


@pytest.fixture
def client(server: OmlxDouble) -> Iterator[EmbeddingClient]:
    client = EmbeddingClient([server.url], model=QUIET, key=KEY)
    yield client
    client.close()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


FAULTS = [
    ("null", BadVectorsError, "gaps"),
    ("texts", BadVectorsError, "gaps"),
    ("booleans", BadVectorsError, "gaps"),
    ("nan", BadVectorsError, "not finite"),
    ("infinity", BadVectorsError, "not finite"),
    ("zeros", BadVectorsError, "zeros"),
    ("nested", BadVectorsError, "one vector for each token"),
    ("one-number", BadVectorsError, "not a list"),
    ("wrong-size", WrongModelError, "1024 numbers, and DigUp's have 768"),
    ("no-rows", BadVectorsError, "0 vectors for 1 text"),
    ("short", BadVectorsError, "0 vectors for 1 text"),
    ("index-too-high", BadVectorsError, "matched"),
    ("unauthorized", RefusedKeyError, "refused the key (HTTP 401)"),
    ("forbidden", RefusedKeyError, "refused the key (HTTP 403)"),
    ("not-an-embeddings-model", WrongModelError, "makes no embeddings"),
    ("load-failed", WrongModelError, "cannot load"),
    ("loading", LoadingError, "still loading"),
    ("no-memory", EmbeddingError, "Not enough memory"),
    ("too-long", EmbeddingError, "too large to process"),
    ("redirect", EmbeddingError, "redirects"),
    ("not-json", BadVectorsError, "not JSON"),
    ("only-a-space", BadVectorsError, "an empty answer"),
    ("error-in-200", BadVectorsError, "failed at its work: embedding failed"),
    ("spaces-then-cut", UnreachableError, "broke off"),
    ("huge", BadVectorsError, "no end"),
]


@pytest.mark.parametrize(("fault", "kind", "words"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
def test_each_fault_has_its_own_verdict(
    server: OmlxDouble, client: EmbeddingClient, fault: str, kind: type[EmbeddingError], words: str
) -> None:
    server.fault = fault

    with pytest.raises(EmbeddingError) as caught:
        client.query_vector("hello", code=False)

    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert server.url in str(caught.value)
    assert KEY not in str(caught.value)
    assert client.state().last_error is not None
    assert client.state().failing_since is not None


@pytest.mark.parametrize("fault", ["slow", "drip"])
def test_a_server_that_takes_too_long_is_left(server: OmlxDouble, fault: str) -> None:
    client = EmbeddingClient([server.url], model=QUIET, key=KEY, timeout_s=0.3)
    server.fault, server.slow_s = fault, 20.0
    began = time.monotonic()

    with pytest.raises(UnreachableError, match="did not answer in time"):
        client.query_vector("hello", code=False)

    assert time.monotonic() - began < 10
    client.close()


def test_nothing_of_a_fault_is_remembered(server: OmlxDouble, client: EmbeddingClient) -> None:
    server.fault = "null"
    with pytest.raises(BadVectorsError):
        client.query_vector("hello", code=False)
    server.fault = ""

    vector = client.query_vector("hello", code=False)

    assert np.isclose(np.linalg.norm(vector), 1)
    assert client.state().failing_since is None
    assert client.state().last_error is None


def test_blanks_before_the_answer_are_no_fault(server: OmlxDouble) -> None:
    server.fault = "spaces"
    client = EmbeddingClient([server.url], model=QUIET, key=KEY)

    assert client.query_vector("hello", code=False).shape == (768,)
    client.close()


def test_vectors_in_another_order_are_matched_by_their_index(
    server: OmlxDouble, client: EmbeddingClient
) -> None:
    texts = ["one", "two", "three"]
    server.fault = "reordered"

    assert np.allclose(client.embed(texts), HashedWords().embed(texts), atol=1e-6)


@pytest.mark.parametrize("fault", ["same-index", "no-index", "short"])
def test_vectors_that_cannot_be_told_apart_are_refused(
    server: OmlxDouble, client: EmbeddingClient, fault: str
) -> None:
    server.fault = fault

    with pytest.raises(BadVectorsError):
        client.embed(["one", "two", "three"])


def test_a_missing_key_is_named_as_missing(server: OmlxDouble) -> None:
    client = EmbeddingClient([server.url], model=QUIET)

    with pytest.raises(RefusedKeyError, match="asks for a key and none is set"):
        client.query_vector("hello", code=False)
    client.close()


@pytest.mark.parametrize("key", ["line\nbreak-secret", "schlüssel-secret", "\x00secret"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(server: OmlxDouble, key: str) -> None:
    client = EmbeddingClient([server.url], model=QUIET, key=key)

    with pytest.raises(RefusedKeyError) as caught:
        client.query_vector("hello", code=False)

    assert "secret" not in str(caught.value)
    client.close()


def test_a_server_without_the_model_and_without_another_gemma_says_so(tmp_path: Path) -> None:
    with OmlxDouble(tmp_path, api_key=None) as server:
        server.add_model("mlx-community/embeddinggemma-300m", "bert")
        client = EmbeddingClient([server.url], model=QUIET)

        with pytest.raises(WrongModelError, match=f"no model {QUIET}, and no EmbeddingGemma 2"):
            client.query_vector("hello", code=False)
        client.close()


def test_an_address_without_such_a_service_is_told_from_a_missing_model(server: OmlxDouble) -> None:
    client = EmbeddingClient([f"{server.url}/elsewhere"], model=QUIET, key=KEY)

    with pytest.raises(WrongModelError, match="no embeddings service at this address"):
        client.query_vector("hello", code=False)
    client.close()


def test_a_port_where_nothing_listens_is_named(tmp_path: Path) -> None:
    client = EmbeddingClient([f"http://127.0.0.1:{closed_port()}"], model=QUIET)

    with pytest.raises(UnreachableError, match="refuses connections"):
        client.query_vector("hello", code=False)


def test_a_name_that_nobody_knows_is_named() -> None:
    client = EmbeddingClient(["http://mac-mini.invalid:8000"], model=QUIET)

    with pytest.raises(UnreachableError, match=r"name that is not known|within 3 s|cannot be reached"):
        client.query_vector("hello", code=False)


def test_what_is_no_address_is_a_fault_and_no_crash() -> None:
    for url in ("ftp://host", "http://[::1", "http://", "http://a b", "http://h:99999"):
        client = EmbeddingClient([url], model=QUIET, connect_s=0.5)
        with pytest.raises(UnreachableError):
            client.query_vector("hello", code=False)


@pytest.fixture
def trickle() -> Iterator[str]:
    """A server that sends one letter of a header now and then, for ever."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)

        def serve() -> None:
            while not stop.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                with connection:
                    connection.settimeout(5)
                    try:
                        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
                        while not stop.wait(0.05):
                            connection.sendall(b"a")
                    except OSError:
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        stop.set()
        thread.join()


def test_no_server_can_hold_a_question_longer_than_its_limit(trickle: str) -> None:
    client = EmbeddingClient([trickle], model=QUIET, timeout_s=0.3)
    began = time.monotonic()

    with pytest.raises(UnreachableError, match="in time"):
        client.query_vector("hello", code=False)

    assert time.monotonic() - began < 3
    client.close()


def test_a_callers_deadline_wins_over_all_others(server: OmlxDouble) -> None:
    server.fault = "slow"
    client = EmbeddingClient([server.url] * 3, model=QUIET, key=KEY)
    began = time.monotonic()

    with pytest.raises(UnreachableError):
        client.query_vector("hello", code=False, deadline=Deadline(0.2))

    assert time.monotonic() - began < 3
    client.close()


def subclasses(kind: type) -> Iterator[type]:
    for sub in kind.__subclasses__():
        yield sub
        yield from subclasses(sub)


TRANSPORT_ERRORS = sorted(
    {httpx.TransportError, *subclasses(httpx.TransportError)}, key=lambda kind: kind.__name__
)


@pytest.mark.parametrize("kind", TRANSPORT_ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_of_the_transport_becomes_ours(kind: type[httpx.TransportError]) -> None:
    def fail(_request: httpx.Request) -> httpx.Response:
        raise kind(f"Illegal header value b'Bearer {KEY}'")

    client = EmbeddingClient(["http://host"], model=QUIET, key=KEY, transport=httpx.MockTransport(fail))

    with pytest.raises(UnreachableError) as caught:
        client.query_vector("hello", code=False)

    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "http://host" in str(caught.value)


def test_there_are_transport_errors_to_walk() -> None:
    assert len(TRANSPORT_ERRORS) >= 16


def test_a_transport_that_breaks_in_any_other_way_is_a_fault_too() -> None:
    def fail(_request: httpx.Request) -> httpx.Response:
        raise RuntimeError("Cannot send a request, as the client has been closed.")

    client = EmbeddingClient(["http://host"], model=QUIET, transport=httpx.MockTransport(fail))

    with pytest.raises(UnreachableError):
        client.query_vector("hello", code=False)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"data": [{"index": 0, "embedding": [1' + b"0" * 400 + b"]}]}",
        b'{"data": [{"index": 0, "embedding": [' + b"1e999," * 767 + b"1]}]}",
        b'{"data": [{"index": true, "embedding": []}]}',
        b'{"data": {"embedding": []}}',
        b'{"data": [null]}',
        b'{"data": [{}]}',
        b"\xff\xfe",
        b'"text"',
        b"null",
        b"[]",
        b'{"data": [{"index": 0, "embedding": []}]}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_no_body_of_an_answer_is_a_crash(body: bytes) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    client = EmbeddingClient(["http://host"], model=QUIET, transport=transport)

    with pytest.raises((BadVectorsError, WrongModelError)):
        client.query_vector("hello", code=False)


def test_a_compressed_answer_is_not_unpacked() -> None:
    def packed(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"x"))

    client = EmbeddingClient(["http://host"], model=QUIET, transport=httpx.MockTransport(packed))

    with pytest.raises(BadVectorsError, match="is compressed"):
        client.query_vector("hello", code=False)


def test_an_integer_beyond_all_floats_is_not_finite() -> None:
    numbers = ",".join(["1" + "0" * 400] + ["1"] * 767)
    body = f'{{"data": [{{"index": 0, "embedding": [{numbers}]}}]}}'.encode()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    client = EmbeddingClient(["http://host"], model=QUIET, transport=transport)

    with pytest.raises(BadVectorsError, match="not finite"):
        client.query_vector("hello", code=False)


def test_the_servers_own_words_are_cut_and_cleaned_and_hold_no_key() -> None:
    said = f"key {KEY} \x1b[31m\u202e\n" + "a" * 500
    transport = httpx.MockTransport(lambda _: httpx.Response(500, json={"error": {"message": said}}))
    client = EmbeddingClient(["http://user:pw-planted@host"], model=QUIET, key=KEY, transport=transport)

    with pytest.raises(EmbeddingError) as caught:
        client.query_vector("hello", code=False)

    told = str(caught.value)
    assert KEY not in told
    assert "pw-planted" not in told
    assert told.isprintable()
    assert len(told) < 400

"""The embedding client when things go well, and what it does about addresses, keys, models and time."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.doubles.model import HashedWords
from tests.doubles.omlx import OmlxDouble

from hermes_digup.embedding import Deadline, EmbeddingClient, query_prompt
from hermes_digup.errors import RefusedKeyError, UnreachableError, WrongModelError

GEMMA, MODEL = "google/embeddinggemma-2", "embeddinggemma-2"


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Servers:
    """Answers at several addresses, for questions of which one is asked and with what."""

    def __init__(self, answers: dict[str, Callable[[httpx.Request], httpx.Response]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url}")
        return self.answers[request.url.host](request)

    def client(self, *urls: str, **given: Any) -> EmbeddingClient:
        return EmbeddingClient(urls, transport=httpx.MockTransport(self), **{"model": MODEL} | given)


def good(request: httpx.Request) -> httpx.Response:
    texts = json.loads(request.content)["input"]
    rows = HashedWords().embed(texts).tolist()
    return httpx.Response(200, json={"data": [{"index": n, "embedding": row} for n, row in enumerate(rows)]})


def away(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectTimeout("away", request=request)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OmlxDouble]:
    with OmlxDouble(tmp_path / "base", api_key="main-key-1") as double:
        double.add_sub_key("sub-key-1")
        double.add_model(GEMMA)
        yield double


def test_prompts_are_digups() -> None:
    assert query_prompt(" cat\n", code=False) == "task: search result | query: cat"
    assert query_prompt("cat", code=True) == "task: code retrieval | query: cat"


def test_a_query_becomes_a_unit_vector_of_the_prompted_text(server: OmlxDouble) -> None:
    client = EmbeddingClient([server.url], model=MODEL, key="sub-key-1")

    vector = client.query_vector("red fox", code=False)

    expected = HashedWords().embed(["task: search result | query: red fox"])[0]
    assert vector.dtype == np.float32
    assert np.allclose(vector, expected, atol=1e-6)
    assert not vector.flags.writeable
    client.close()


def test_vectors_are_scaled_to_unit_length() -> None:
    def long(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"data": [{"index": 0, "embedding": [1e300] * 768}]})

    vector = Servers({"host": long}).client("http://host").query_vector("x", code=False)

    assert np.isclose(np.linalg.norm(vector), 1)


@pytest.mark.parametrize("url", ["http://host", "http://host/", "http://host/v1", "http://host/v1/"])
def test_a_base_address_may_end_in_v1(url: str) -> None:
    servers = Servers({"host": good})

    servers.client(url).query_vector("x", code=False)

    assert servers.asked == ["POST http://host/v1/embeddings"]


def test_ollamas_api_is_spoken_too() -> None:
    def ollama(request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content) if request.content else {}
        if request.url.path == "/api/tags":
            return httpx.Response(
                200, json={"models": [{"name": "llama3:8b"}, {"name": "embeddinggemma2:latest"}]}
            )
        if asked["model"] != "embeddinggemma2:latest":
            return httpx.Response(
                404, json={"error": f'model "{asked["model"]}" not found, try pulling it first'}
            )
        return httpx.Response(200, json={"embeddings": HashedWords().embed(asked["input"]).tolist()})

    servers = Servers({"host": ollama})
    client = servers.client("http://host", api="ollama")

    assert np.allclose(client.embed(["one", "two"]), HashedWords().embed(["one", "two"]), atol=1e-6)
    assert servers.asked == [
        "POST http://host/api/embed", "GET http://host/api/tags", "POST http://host/api/embed",
    ]  # fmt: skip


def test_the_same_question_is_asked_once(server: OmlxDouble) -> None:
    client = EmbeddingClient([server.url], model=MODEL, key="sub-key-1")

    first = client.query_vector("red fox", code=False)
    again = client.query_vector(" red fox ", code=False)
    code = client.query_vector("red fox", code=True)

    assert again is first
    assert code is not first
    assert server.requests.count(("POST", "/v1/embeddings")) == 2
    client.close()


def test_the_last_512_questions_are_remembered() -> None:
    body = json.dumps({"data": [{"index": 0, "embedding": [1] * 768}]})
    servers = Servers({"host": lambda _: httpx.Response(200, text=body)})
    client = servers.client("http://host")
    for number in range(512):
        client.query_vector(f"q{number}", code=False)
    client.query_vector("q0", code=False)

    client.query_vector("one more", code=False)

    assert len(servers.asked) == 513
    client.query_vector("q0", code=False)
    assert len(servers.asked) == 513
    client.query_vector("q1", code=False)
    assert len(servers.asked) == 514


def test_addresses_are_tried_in_order() -> None:
    servers = Servers({"first": away, "second": good, "third": good})
    client = servers.client("http://first", "http://second", "http://third")

    client.query_vector("x", code=False)

    assert servers.asked == ["POST http://first/v1/embeddings", "POST http://second/v1/embeddings"]
    assert client.state().url == "http://second"


def test_a_dead_address_rests_for_30_seconds() -> None:
    clock, servers = Clock(), Servers({"first": away, "second": good})
    client = servers.client("http://first", "http://second", clock=clock)
    client.query_vector("a", code=False)

    clock.now += 29
    client.query_vector("b", code=False)
    assert servers.asked.count("POST http://first/v1/embeddings") == 1

    clock.now += 2
    client.query_vector("c", code=False)
    assert servers.asked.count("POST http://first/v1/embeddings") == 2


def test_when_all_addresses_rest_the_cause_is_told_at_once() -> None:
    clock, servers = Clock(), Servers({"first": away})
    client = servers.client("http://first", clock=clock)

    for _ in range(3):
        with pytest.raises(UnreachableError, match=r"within 3 s \(http://first\)"):
            client.query_vector("a", code=False)

    assert len(servers.asked) == 1


def test_failing_since_is_the_first_failure_and_ends_with_success() -> None:
    clock, servers = Clock(), Servers({"first": away})
    client = servers.client("http://first", clock=clock)
    with pytest.raises(UnreachableError):
        client.query_vector("a", code=False)
    since = client.state().failing_since
    with pytest.raises(UnreachableError):
        client.query_vector("a", code=False)
    assert client.state().failing_since is since

    clock.now += 31
    servers.answers["first"] = good
    client.query_vector("a", code=False)

    state = client.state()
    assert (state.failing_since, state.last_error) == (None, None)
    assert state.last_ok_at is not None
    assert state.last_ok_at.tzinfo is not None
    assert state.last_ms is not None


def test_a_server_that_answered_is_told_before_one_that_is_away() -> None:
    def refuse(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(401, json={})

    servers = Servers({"first": away, "second": refuse, "third": away})

    with pytest.raises(RefusedKeyError, match="http://second"):
        servers.client("http://first", "http://second", "http://third", key="k").query_vector("a", code=False)


def test_a_fault_that_is_over_is_not_told_again() -> None:
    clock, servers = Clock(), Servers({"host": away})
    client = servers.client("http://host", clock=clock)
    with pytest.raises(UnreachableError, match="within 3 s"):
        client.query_vector("a", code=False)
    clock.now += 31
    servers.answers["host"] = good
    client.query_vector("a", code=False)

    with pytest.raises(UnreachableError, match="no time left"):
        client.query_vector("b", code=False, deadline=Deadline(0))


def test_no_time_left_is_told_without_asking() -> None:
    servers = Servers({"host": good})

    with pytest.raises(UnreachableError, match="no time left"):
        servers.client("http://host").query_vector("a", code=False, deadline=Deadline(0))

    assert servers.asked == []


def test_a_rotated_key_is_read_again_after_a_refusal(server: OmlxDouble) -> None:
    keys = iter(["old-key", "sub-key-1"])
    client = EmbeddingClient([server.url], model=MODEL, key=lambda: next(keys))

    assert client.query_vector("a", code=False).shape == (768,)
    assert server.requests.count(("POST", "/v1/embeddings")) == 2
    client.close()


def test_the_same_key_is_not_tried_twice(server: OmlxDouble) -> None:
    client = EmbeddingClient([server.url], model=MODEL, key=lambda: "old-key")

    with pytest.raises(RefusedKeyError, match=r"rotate_key\.yml"):
        client.query_vector("a", code=False)

    assert server.requests.count(("POST", "/v1/embeddings")) == 1
    client.close()


def test_another_gemma_stands_in_unquantised_first_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with OmlxDouble(tmp_path, api_key=None) as server:
        for repo in (
            "mlx-community/embeddinggemma-2-8bit",
            "mine/EmbeddingGemma2-bf16",
            "x/embeddinggemma-300m",
        ):
            server.add_model(repo)
        server.add_model("x/tiny-chat", "llama")
        client = EmbeddingClient([server.url], model="vectors")

        with caplog.at_level(logging.WARNING):
            client.query_vector("a", code=False)
            client.query_vector("b", code=False)

        state = client.state()
        assert (state.model_asked, state.model_used) == ("vectors", "EmbeddingGemma2-bf16")
        assert state.uses_other_model
        assert len(caplog.records) == 1
        assert server.requests.count(("GET", "/v1/models")) == 1
        client.close()


def test_the_model_that_is_set_is_used_when_it_is_there(server: OmlxDouble) -> None:
    client = EmbeddingClient([server.url], model=GEMMA, key="sub-key-1")

    client.query_vector("a", code=False)

    assert not client.state().uses_other_model
    assert ("GET", "/v1/models") not in server.requests
    client.close()


def test_a_stand_in_that_vanishes_is_looked_for_again() -> None:
    there = ["embeddinggemma-2-4bit"]

    def serve(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={"data": [{"id": name} for name in there]})
        name = json.loads(request.content)["model"]
        missing = httpx.Response(404, json={"error": {"message": f"Model '{name}' not found."}})
        return good(request) if name in there else missing

    client = Servers({"host": serve}).client("http://host", model="vectors")
    client.query_vector("a", code=False)
    there[:] = ["embeddinggemma-2-8bit"]

    client.query_vector("b", code=False)

    assert client.state().model_used == "embeddinggemma-2-8bit"
    there.clear()
    with pytest.raises(WrongModelError):
        client.query_vector("c", code=False)


def test_documents_are_embedded_exactly_as_given(server: OmlxDouble) -> None:
    client = EmbeddingClient([server.url], model=MODEL, key="sub-key-1")
    texts = [f"title: none | text: number {number} " for number in range(11)]

    rows = client.embed(texts)

    assert np.allclose(rows, HashedWords().embed(texts), atol=1e-6)
    assert client.embed([]).shape == (0, 768)
    client.close()


def test_any_text_can_be_asked(server: OmlxDouble) -> None:
    client = EmbeddingClient([server.url], model=MODEL, key="sub-key-1")

    for text in ("", "\ud800", "\0", "a" * 100_000, '"}', "نص 文字"):
        assert client.query_vector(text, code=False).shape == (768,)
    client.close()


def test_many_threads_may_ask_at_once(server: OmlxDouble) -> None:
    client = EmbeddingClient([server.url], model=MODEL, key="sub-key-1")
    questions = [f"question {number % 20}" for number in range(80)]

    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(lambda question: client.query_vector(question, code=False), questions))

    expected = HashedWords().embed([query_prompt(question, code=False) for question in questions])
    assert np.allclose(np.vstack(vectors), expected, atol=1e-6)
    client.close()


def test_closing_lets_those_at_work_finish(server: OmlxDouble) -> None:
    server.fault, server.slow_s = "spaces", 0.5
    client = EmbeddingClient([server.url], model=MODEL, key="sub-key-1")

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.query_vector, "a", code=False)
        while ("POST", "/v1/embeddings") not in server.requests:
            assert not asked.done()
        client.close()

        assert asked.result(timeout=10).shape == (768,)
    assert server.requests == [("POST", "/v1/embeddings")]


def test_a_restarted_server_is_found_again(server: OmlxDouble) -> None:
    client = EmbeddingClient([server.url], model=MODEL, key="sub-key-1")
    client.query_vector("a", code=False)

    server.restart()

    assert client.query_vector("b", code=False).shape == (768,)
    client.close()


def test_a_kept_connection_that_died_is_replaced() -> None:
    body = json.dumps({"data": [{"index": 0, "embedding": [1] * 768}]}).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    asked: list[str] = []

    def serve(listener: socket.socket) -> None:
        for name in ("first", "second"):
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(10)
                request(connection)
                asked.append(name)
                connection.sendall(answer)
                request(connection)  # the next one on this connection is read and never answered

    def request(connection: socket.socket) -> None:
        got = b""
        while b"hello" not in got:
            part = connection.recv(65536)
            if not part:
                return
            got += part

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(serve, listener)
        client = EmbeddingClient([f"http://127.0.0.1:{listener.getsockname()[1]}"], model=MODEL)

        client.query_vector("hello one", code=False)
        client.query_vector("hello two", code=False)

        client.close()
        serving.result(timeout=10)
    assert asked == ["first", "second"]


def test_proxies_of_the_environment_are_not_used(server: OmlxDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    client = EmbeddingClient([server.url], model=MODEL, key="sub-key-1")

    assert client.query_vector("a", code=False).shape == (768,)
    client.close()


def test_a_client_needs_an_address() -> None:
    with pytest.raises(ValueError, match="address"):
        EmbeddingClient([], model=MODEL)


def test_importing_the_room_does_not_import_httpx() -> None:
    code = "import hermes_digup.embedding, sys; sys.exit('httpx' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

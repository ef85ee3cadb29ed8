"""The embedding server, well and ill: what searches, index_status and doctor say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.doubles.model import HashedWords
from tests.doubles.omlx import OmlxDouble

from hermes_digup.cli import main

KEY = "sk-planted-key-0123456789"
GEMMA = "google/embeddinggemma-2"
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def omlx(tmp_path) -> Iterator[OmlxDouble]:
    """An oMLX with the model that the sample index was made with."""
    with OmlxDouble(tmp_path / "omlx", api_key=KEY, model=HashedWords()) as double:
        double.add_model(GEMMA)
        yield double


def settings(double: OmlxDouble, **more: str) -> dict[str, str]:
    return {"DIGUP_EMBED_URL": double.url, "DIGUP_EMBED_API_KEY": KEY, **more}


async def search(client: Client, query: str) -> dict[str, Any]:
    result = await client.call_tool("search_files", {"query": query})
    assert not result.is_error
    assert KEY not in str(result)
    return result.structured_content or {}


@pytest.fixture
def run_doctor(pi: Path, monkeypatch, capsys) -> Callable[..., tuple[int, str]]:
    """Runs doctor on the Pi; gives its exit code and what it says, on one line."""

    def run(**environ: str) -> tuple[int, str]:
        for key, value in {"HOME": str(pi), **environ}.items():
            monkeypatch.setenv(key, value)
        exit_code = main(["doctor"])
        shown = capsys.readouterr()
        assert KEY not in shown.out + shown.err
        return exit_code, " ".join(shown.out.split())

    return run


async def test_with_a_vector_hits_say_how_near_they_are(pi, serve, omlx) -> None:
    async with serve(pi, **settings(omlx)) as client:
        found = await search(client, "invoice for the booking page")
        status = (await client.call_tool("index_status", {})).structured_content

    assert found["status"] == "ok"
    assert {each["code"] for each in found["warnings"]} <= {"partially_indexed"}
    assert all("z" in hit for hit in found["hits"] if hit["matched"] != "words")
    assert {"both", "meaning"} & {hit["matched"] for hit in found["hits"]}
    assert status["embedding"]["state"] == "ok"
    assert "by meaning and by words" in status["searches"]


@pytest.mark.parametrize(
    "case",
    [
        ("unauthorized", "key_refused"),
        ("loading", "loading"),
        ("not-an-embeddings-model", "wrong_model"),
        ("wrong-size", "wrong_model"),
        ("null", "bad_vectors"),
        ("nan", "bad_vectors"),
        ("zeros", "bad_vectors"),
        ("short", "bad_vectors"),
        ("not-json", None),
        ("spaces-then-cut", None),
    ],
    ids=lambda case: case[0],
)
async def test_each_fault_leaves_words_and_is_named(pi, serve, omlx, run_doctor, case) -> None:
    omlx.fault, cause = case

    async with serve(pi, **settings(omlx)) as client:
        found = await search(client, "invoice")

    warning = next(each for each in found["warnings"] if each["code"] == "words_only")
    exit_code, shown = run_doctor(**settings(omlx))
    assert found["hits"]
    assert warning["since"]
    assert cause in (None, warning["cause"])
    assert exit_code == 1
    assert f"[{warning['cause']}]" in shown


async def test_a_model_of_another_name_stands_in_and_is_said_once(pi, serve, omlx) -> None:
    async with serve(pi, **settings(omlx, DIGUP_EMBED_MODEL="my-gemma")) as client:
        first, second = await search(client, "invoice"), await search(client, "lease")

    assert [each["code"] for each in first["warnings"]].count("other_model") == 1
    assert "other_model" not in [each["code"] for each in second["warnings"]]


async def test_a_new_key_reaches_a_running_server_at_the_first_refusal(pi, serve, omlx, tmp_path) -> None:
    config = tmp_path / "config.env"
    config.write_text(f"DIGUP_EMBED_URL={omlx.url}\nDIGUP_EMBED_API_KEY=sk-old-key-that-was-deleted\n")

    async with serve(pi, DIGUP_CONFIG=str(config)) as client:
        before = await search(client, "invoice")
        config.write_text(f"DIGUP_EMBED_URL={omlx.url}\nDIGUP_EMBED_API_KEY={KEY}\n")
        after = await search(client, "lease")

    assert "words_only" in {each["code"] for each in before["warnings"]}
    assert "words_only" not in {each["code"] for each in after["warnings"]}


async def test_doctor_proves_that_the_vectors_match(omlx, run_doctor) -> None:
    exit_code, shown = run_doctor(**settings(omlx))

    assert exit_code == 0, shown
    assert "match: mean cosine 1.0000" in shown
    assert "agree" in shown
    assert shown.endswith("all good")


async def test_doctor_sees_another_model(tmp_path, run_doctor) -> None:
    class Other(HashedWords):
        """A model that puts every text elsewhere."""

        def embed(self, prompted):
            return super().embed([f"{text[::-1]} other" for text in prompted])

    with OmlxDouble(tmp_path / "omlx", api_key=KEY, model=Other()) as double:
        double.add_model(GEMMA)
        exit_code, shown = run_doctor(**settings(double))

    assert exit_code == 1
    assert "mismatch" in shown


async def test_doctor_sees_that_batches_differ(omlx, run_doctor) -> None:
    omlx.fault = "batch-differs"

    _, shown = run_doctor(**settings(omlx))

    assert "differ: cosine" in shown

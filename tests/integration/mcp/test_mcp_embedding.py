"""The model server, well and ill: what searches, index_status and doctor say of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.doubles.model import HashedWords
from tests.doubles.omlx import OmlxDouble
from tests.doubles.omlx_embeddings import FAULTS

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


# What each fault of a server comes to: the cause that a search tells, and that doctor puts beside its FAIL.
CAUSES = {
    "unauthorized": "key_refused",
    "forbidden": "key_refused",
    "not-an-embeddings-model": "wrong_model",
    "load-failed": "wrong_model",
    "wrong-size": "wrong_model",
    "loading": "loading",
    "too-long": "embedding_failed",
    "no-memory": "embedding_failed",
    "redirect": "embedding_failed",
    "slow": "unreachable",
    "drip": "unreachable",
    "spaces-then-cut": "unreachable",
    **dict.fromkeys(("null", "nan", "infinity", "zeros", "texts", "booleans", "nested"), "bad_vectors"),
    **dict.fromkeys(("one-number", "short", "no-rows", "index-too-high"), "bad_vectors"),
    **dict.fromkeys(("only-a-space", "not-json", "error-in-200", "huge"), "bad_vectors"),
}
# A question has one text, and so no order: these faults show when doctor asks for many at once, or are none.
DOCTOR_ALONE = {
    "same-index": "bad_vectors",
    "no-index": "bad_vectors",
    "batch-differs": "differ: cosine",
    "reordered": "all good",
    "spaces": "all good",
}


def test_every_fault_of_the_double_is_tried() -> None:
    assert set(CAUSES) | set(DOCTOR_ALONE) == set(FAULTS)


@pytest.mark.parametrize("fault", sorted(CAUSES))
async def test_each_fault_leaves_words_and_is_named(pi, serve, omlx, run_doctor, fault: str) -> None:
    takes_too_long, cause = fault in ("slow", "drip"), CAUSES[fault]
    omlx.fault, omlx.slow_s = fault, 2.0 if takes_too_long else 0.2
    given = settings(omlx, DIGUP_EMBED_TIMEOUT="0.5" if takes_too_long else "8")

    async with serve(pi, **given) as client:
        found = await search(client, "invoice")
        status = (await client.call_tool("index_status", {})).structured_content
    exit_code, shown = run_doctor(**given)

    warning = next(each for each in found["warnings"] if each["code"] == "words_only")
    assert found["hits"]
    assert {hit["matched"] for hit in found["hits"]} == {"words"}
    assert warning["cause"] == cause
    assert warning["since"]
    assert status["embedding"]["state"] == "failing"
    assert exit_code == 1
    assert re.search(rf"FAIL model server .*?\[{cause}\] fix: ", shown), shown
    assert "skip query vectors" in shown
    assert "hermes-digup doctor" not in shown


def test_doctor_names_a_model_that_stands_in_for_the_one_that_is_set(run_doctor, omlx) -> None:
    exit_code, shown = run_doctor(**settings(omlx, DIGUP_EMBED_MODEL="another-model"))

    assert exit_code == 0
    assert re.search(
        r"warn model server .* as it has no another-model fix: Set DIGUP_EMBED_MODEL to the", shown
    ), shown


@pytest.mark.parametrize(("is_there", "state"), [(True, "ok"), (False, "failing")])
async def test_status_asks_the_model_server_itself(pi, serve, omlx, is_there: bool, state: str) -> None:
    given = settings(omlx) if is_there else {**settings(omlx), "DIGUP_EMBED_URL": "http://127.0.0.1:9"}

    async with serve(pi, **given) as client:
        status = (await client.call_tool("index_status", {})).structured_content

    assert status["embedding"]["state"] == state
    assert ("answer_ms" in status["embedding"]) is is_there
    assert ("problem" in status["embedding"]) is not is_there
    assert ("by words alone" in status["searches"]) is not is_there


@pytest.mark.parametrize("fault", sorted(DOCTOR_ALONE))
async def test_what_one_question_does_not_meet_doctor_finds(pi, serve, omlx, run_doctor, fault: str) -> None:
    omlx.fault, omlx.slow_s = fault, 0.3

    async with serve(pi, **settings(omlx)) as client:
        found = await search(client, "invoice")
    _, shown = run_doctor(**settings(omlx))

    assert "words_only" not in {each["code"] for each in found["warnings"]}
    assert DOCTOR_ALONE[fault] in shown


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

"""What the proof accepts, and the sentence for each way in which a server gives wrong vectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.omlx_server.rig import HOST, Mac

MacMaker = Callable[..., Mac]
KEY = "sub-key-of-the-tests"
Prove = Callable[..., dict[str, Any]]


@pytest.fixture
def one(mac: MacMaker) -> Mac:
    made = mac()
    made.omlx.add_sub_key(KEY)
    made.omlx.add_model("google/embeddinggemma-2")
    made.omlx.slow_s = 0.3
    return made


@pytest.fixture
def prove(one: Mac, call: Callable[..., dict[str, Any]]) -> Prove:
    def run(**arguments: Any) -> dict[str, Any]:
        given = {"urls": [one.omlx.url], "api_key": KEY, "model": "embeddinggemma-2", "timeout_seconds": 10}
        result = call("omlx_proof", host=HOST, **{**given, **arguments})
        result.pop("invocation", None)
        assert given["api_key"] not in json.dumps(result)
        return result

    return run


def test_good_vectors_pass_and_change_nothing(one: Mac, prove: Prove) -> None:
    before = one.files()
    result = prove(_ansible_check_mode=True)
    assert not result["changed"] and result["url"] == one.omlx.url
    assert result["agreement"] >= 0.999 and result["silent"] == []
    assert one.files() == before


def test_the_next_address_is_used_when_one_is_silent(one: Mac, prove: Prove) -> None:
    silent = "http://127.0.0.9:9"
    result = prove(urls=[silent, one.omlx.url + "/"])
    assert (result["url"], result["silent"]) == (one.omlx.url, [silent])


def test_nobody_there_is_a_sentence(prove: Prove) -> None:
    result = prove(urls=["http://127.0.0.9:9"])
    assert result["failed"] and "http://127.0.0.9:9" in result["msg"] and "firewall" in result["msg"]


@pytest.mark.parametrize("fault", ["reordered", "spaces", "drip", "slow"])
def test_odd_but_right_answers_pass(one: Mac, prove: Prove, fault: str) -> None:
    one.omlx.fault = fault
    assert not prove().get("failed")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("null", "no finite numbers"),
        ("nan", "no finite numbers"),
        ("infinity", "no finite numbers"),
        ("texts", "no finite numbers"),
        ("booleans", "no finite numbers"),
        ("zeros", "zeros"),
        ("nested", "wrong model"),
        ("wrong-size", "1024 values"),
        ("one-number", "wrong model"),
        ("short", "gave 0 vectors for 1"),
        ("no-rows", "gave 0 vectors for 1"),
        ("no-index", "gave 1 vectors for 1"),
        ("index-too-high", "gave 1 vectors for 1"),
        ("same-index", "gave 3 vectors for 3"),
        ("batch-differs", "pools"),
        ("only-a-space", "empty or broken answer"),
        ("not-json", "empty or broken answer"),
        ("spaces-then-cut", "broke off"),
        ("error-in-200", "embedding failed"),
        ("redirect", "HTTP 307"),
        ("load-failed", "previous load failure"),
        ("no-memory", "HTTP 507"),
        ("unauthorized", "refuses our sub key"),
    ],
)
def test_wrong_answers_are_named(one: Mac, prove: Prove, fault: str, words: str) -> None:
    one.omlx.fault = fault
    result = prove()
    assert result["failed"] and words in result["msg"], result


def test_a_deleted_key_is_said(prove: Prove) -> None:
    result = prove(api_key="a-key-that-was-deleted")
    assert result["failed"] and "refuses our sub key" in result["msg"]


def test_a_server_open_to_all_does_not_pass(one: Mac, prove: Prove) -> None:
    one.omlx.state.settings["auth"]["skip_api_key_verification"] = True
    result = prove()
    assert result["failed"] and "answers without a key" in result["msg"]


def test_an_unknown_model_is_said_with_what_there_is(prove: Prove) -> None:
    result = prove(model="gemma-of-mine")
    assert result["failed"] and "gemma-of-mine" in result["msg"] and "embeddinggemma-2" in result["msg"]

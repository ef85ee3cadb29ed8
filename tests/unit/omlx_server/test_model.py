"""The model: found or downloaded, of the right type, pinned and in memory; nobody else's is touched."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils import omlx_download, omlx_serving
from tests.doubles.omlx_downloads import Refused, Task
from tests.unit.omlx_server.rig import MAIN_KEY, Mac

MacMaker = Callable[..., Mac]
REPO = "google/embeddinggemma-2"
MODEL = "embeddinggemma-2"
TOKEN = "hf_good-token-of-the-tests"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omlx_download, "_EVERY_SECONDS", 0.1)


def until_there(one: Mac, **arguments: Any) -> list[dict[str, Any]]:
    """What the role does: one call that starts, then calls that follow until the download has ended."""
    results = [one.model(**arguments)]
    deadline = time.monotonic() + 20
    while results[-1].get("downloading") and time.monotonic() < deadline:
        results.append(one.model(task_id=results[0]["task_id"], wait_seconds=1, **arguments))
    return results


def with_model(one: Mac, repo: str = REPO, kind: str = "embedding_gemma2") -> Mac:
    one.omlx.add_model(repo, kind)
    return one


def test_a_model_that_is_there_is_pinned_and_loaded_once(mac: MacMaker) -> None:
    one = with_model(mac())
    first = one.model()
    assert (first["changed"], first["model"], first["pinned"], first["loaded"]) == (True, MODEL, True, True)
    assert json.loads(one.note.read_text()) == {"model": MODEL, "pinned": True}
    assert one.note.stat().st_mode & 0o777 == 0o600
    one.omlx.requests.clear()
    assert not one.model()["changed"] and one.written() == []


def test_check_mode_on_a_bare_server_would_download_and_asks_for_nothing(mac: MacMaker) -> None:
    one = mac()
    told = one.model(_ansible_check_mode=True, _ansible_diff=True)
    assert told["changed"] and told["model"] == MODEL and "1.5 GB" in told["progress"]
    assert told["diff"]["before"]["present"] is False and told["diff"]["after"]["present"] is True
    assert one.written() == [] and not one.note.exists()


def test_check_mode_tells_about_pin_and_load(mac: MacMaker) -> None:
    one = with_model(mac())
    told = one.model(_ansible_check_mode=True)
    assert told["changed"] and one.written() == [] and not one.note.exists()


def test_a_download_shows_how_far_it_is_and_ends_pinned_and_loaded(mac: MacMaker) -> None:
    results = until_there(mac(download_s=3.0))
    texts = [result["progress"] for result in results]
    assert results[0]["changed"] and results[0]["downloading"]
    assert any("of 1.5 GB (" in text for text in texts), texts
    assert texts[-1] == "complete"
    assert results[-1]["pinned"] and results[-1]["loaded"]


def test_a_running_download_is_joined(mac: MacMaker) -> None:
    one = mac()
    one.omlx.state.download(REPO, "")
    assert until_there(one)[-1]["loaded"]
    assert ("POST", "/admin/api/hf/download") not in one.written()


def test_a_download_started_by_somebody_else_at_the_same_moment_is_joined(
    mac: MacMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = mac()
    started = omlx_download.Download._started

    def too_late(self: Any) -> Any:
        one.omlx.state.download(REPO, "")
        return started(self)

    monkeypatch.setattr(omlx_download.Download, "_started", too_late)
    assert until_there(one)[-1]["loaded"]


def test_an_earlier_failure_does_not_stop_a_new_try(mac: MacMaker) -> None:
    one = mac()
    one.omlx.state.tasks.append(Task(REPO, "", status="failed", error="Download stalled"))
    assert until_there(one)[-1]["loaded"]


def test_a_restart_in_the_middle_of_a_download_is_survived(mac: MacMaker) -> None:
    one = mac(download_s=2.0)
    first = one.model()
    threading.Timer(0.5, one.omlx.restart).start()
    last = first
    deadline = time.monotonic() + 20
    while last.get("downloading") and time.monotonic() < deadline:
        last = one.model(task_id=first["task_id"], wait_seconds=2)
    assert last["loaded"], last
    assert one.written().count(("POST", "/admin/api/hf/download")) == 2


def test_a_server_that_is_away_between_two_looks_at_a_download_is_waited_for(mac: MacMaker) -> None:
    one = mac(download_s=0.5)
    first = one.model()
    one.omlx.stop()
    threading.Timer(1.5, one.omlx.start).start()
    last = one.model(task_id=first["task_id"], wait_seconds=10)
    assert last["loaded"], last


def test_a_cancelled_download_is_said_and_tried_again_next_time(mac: MacMaker) -> None:
    one = mac(download_s=5.0)
    first = one.model()
    one.omlx.state.tasks[-1].status = "cancelled"
    failed = one.model(task_id=first["task_id"], wait_seconds=1)
    assert failed["failed"] and "cancelled in oMLX" in failed["msg"]
    assert one.model()["downloading"]


def test_a_model_behind_a_licence_names_the_licence_and_the_token(mac: MacMaker) -> None:
    one = mac(gated=True)
    failed = until_there(one)[-1]
    assert failed["failed"] and f"https://huggingface.co/{REPO}" in failed["msg"]
    assert "omlx_server_hf_token" in failed["msg"]
    failed = until_there(one, hf_token="hf_bad-token")[-1]
    assert "this token" in failed["msg"] and "hf_bad-token" not in failed["msg"]
    assert until_there(one, hf_token=TOKEN)[-1]["loaded"]


def test_a_hub_out_of_reach_is_said(mac: MacMaker) -> None:
    failed = until_there(mac(hub_down=True))[-1]
    assert failed["failed"] and "could not be reached" in failed["msg"]


def test_complete_without_weights_is_not_believed(mac: MacMaker) -> None:
    one = mac(hub_down=True)
    (one.home / ".omlx" / "models" / REPO).mkdir(parents=True)
    failed = until_there(one)[-1]
    assert failed["failed"] and "incomplete" in failed["msg"]


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        ("[Errno 28] No space left on device", "Free at least 2 GB"),
        ("Download stalled: no activity for 300 s", "Check the network"),
        ("something nobody has seen", "Downloads"),
    ],
)
def test_other_failures_have_a_way_out_too(mac: MacMaker, words: str, way_out: str) -> None:
    one = mac(download_s=5.0)
    first = one.model()
    task = one.omlx.state.tasks[-1]
    task.status, task.error = "failed", words
    failed = one.model(task_id=first["task_id"])
    assert failed["failed"] and way_out in failed["msg"] and words in failed["msg"]


def test_an_old_server_is_told_apart_and_left_as_it_was(mac: MacMaker) -> None:
    one = with_model(mac(old=True))
    failed = one.model()
    assert failed["failed"] and "oMLX 0.4.5.dev1 cannot serve embeddinggemma-2" in failed["msg"]
    assert "Install a release of October 2026" in failed["msg"]
    assert one.omlx.state.type_of(MODEL) == "vlm" and not one.omlx.state.pinned(MODEL)
    assert not one.note.exists()


def test_a_server_that_only_needs_the_type_gets_it_and_loses_it_again(
    mac: MacMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = with_model(mac(old=True))
    monkeypatch.setattr(type(one.omlx.state), "_loadable", lambda *_: True)
    assert one.model()["loaded"] and not one.model()["changed"]
    assert json.loads(one.note.read_text()) == {"model": MODEL, "pinned": True, "override": True}
    one.model(state="absent")
    assert one.omlx.state.type_of(MODEL) == "vlm"


def test_a_type_that_was_ours_goes_and_a_pin_that_was_the_users_stays(
    mac: MacMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = with_model(mac(old=True))
    monkeypatch.setattr(type(one.omlx.state), "_loadable", lambda *_: True)
    one.omlx.state.model_settings[MODEL] = {"is_pinned": True}
    one.model()
    one.model(state="absent")
    assert one.omlx.state.pinned(MODEL) and one.omlx.state.type_of(MODEL) == "vlm"


def test_a_remembered_failure_is_forgotten_and_others_are_loaded_again(mac: MacMaker) -> None:
    one = with_model(with_model(mac()), "mlx-community/tiny-chat", "llama")
    one.omlx.state.load("tiny-chat")
    one.omlx.state.failed.add(MODEL)
    assert one.model()["loaded"]
    assert one.omlx.state.loaded == {"tiny-chat", MODEL}
    assert ("POST", "/admin/api/reload") in one.written()


def test_without_a_remembered_failure_nothing_is_reloaded(mac: MacMaker) -> None:
    one = with_model(with_model(mac()), "mlx-community/tiny-chat", "llama")
    one.omlx.state.load("tiny-chat")
    one.model()
    assert ("POST", "/admin/api/reload") not in one.written()
    assert one.omlx.state.loaded == {"tiny-chat", MODEL}


def test_a_pinned_model_out_of_memory_is_only_loaded(mac: MacMaker) -> None:
    one = with_model(mac(strict=True))
    one.model()
    one.omlx.state.loaded.clear()
    one.omlx.requests.clear()
    assert one.model()["changed"]
    assert one.written() == [("POST", f"/admin/api/models/{MODEL}/load")]


def test_the_users_other_models_keep_their_settings(mac: MacMaker) -> None:
    one = with_model(with_model(mac(strict=True)), "mlx-community/tiny-chat", "llama")
    chat = {"is_pinned": True, "ttl_seconds": 60}
    one.omlx.state.model_settings["tiny-chat"] = dict(chat)
    one.omlx.state.save()
    one.model()
    one.model(state="absent")
    assert one.omlx.state.model_settings["tiny-chat"] == chat


def test_a_copy_under_another_name_is_used_before_anything_is_downloaded(mac: MacMaker) -> None:
    one = with_model(mac(), "somebody/gemma-for-search")
    result = one.model()
    assert result["model"] == "gemma-for-search" and result["warnings"] == []


def test_a_quantised_copy_is_used_with_a_warning(mac: MacMaker) -> None:
    one = with_model(mac(), "mlx-community/embeddinggemma-2-8bit")
    result = one.model()
    assert result["loaded"] and "quantised" in result["warnings"][0]


def test_the_original_comes_before_quantised_copies() -> None:
    models = [
        {"id": name, "config_model_type": "embedding_gemma2"}
        for name in ("a-copy-4bit", "embeddinggemma-2-8bit", "z-copy", MODEL)
    ]
    assert omlx_serving.choose(models, REPO, "")["id"] == MODEL
    assert omlx_serving.choose(models[:3], REPO, "")["id"] == "z-copy"
    assert omlx_serving.choose([], REPO, "") is None


def test_the_rest_of_a_download_is_not_taken_for_the_model() -> None:
    rest = {"id": MODEL, "config_model_type": "embedding_gemma2", "estimated_size": 9_000_000}
    assert omlx_serving.choose([rest], REPO, "") is None
    assert omlx_serving.choose([{**rest, "estimated_size": 400_000_000}], REPO, "")["id"] == MODEL
    assert omlx_serving.choose([{**rest, "estimated_size": None}], REPO, "")["id"] == MODEL


@pytest.mark.parametrize("name", ["x-8bit", "x-4-bit", "x_q4_0", "x-int8", "x-mxfp4", "x-DWQ"])
def test_names_of_quantised_copies_are_known(name: str) -> None:
    assert omlx_serving.quantised({"id": name})


@pytest.mark.parametrize("name", [MODEL, "x-bf16", "768-x", "x-fp16", "q-and-a"])
def test_other_names_are_not_taken_for_quantised(name: str) -> None:
    assert not omlx_serving.quantised({"id": name})


def test_a_wanted_model_that_is_missing_is_said_with_what_there_is(mac: MacMaker) -> None:
    failed = with_model(mac()).model(model="gemma-of-mine")
    assert failed["failed"] and "gemma-of-mine" in failed["msg"] and MODEL in failed["msg"]


def test_looking_changes_nothing(mac: MacMaker) -> None:
    one = mac()
    assert one.model(state="found")["model"] == ""
    with_model(one)
    result = one.model(state="found")
    assert (result["model"], result["changed"], result["loaded"]) == (MODEL, False, False)
    assert one.written() == []


def test_absent_takes_back_our_pin_and_leaves_the_model(mac: MacMaker) -> None:
    one = with_model(mac())
    one.model()
    assert one.model(state="absent", _ansible_check_mode=True)["changed"] and one.note.exists()
    assert one.model(state="absent")["changed"]
    assert not one.omlx.state.pinned(MODEL) and MODEL in one.omlx.state.loaded
    assert not one.note.exists()
    assert not one.model(state="absent")["changed"]


def test_absent_leaves_a_pin_of_the_users(mac: MacMaker) -> None:
    one = with_model(mac())
    one.omlx.state.model_settings[MODEL] = {"is_pinned": True}
    one.model()
    assert not one.model(state="absent")["changed"]
    assert one.omlx.state.pinned(MODEL)


def test_absent_after_omlx_was_removed_only_forgets(mac: MacMaker) -> None:
    one = with_model(mac())
    one.model()
    one.omlx.stop()
    shutil.rmtree(one.home / ".omlx")
    assert one.model(state="absent")["changed"] and not one.note.exists()


def test_absent_on_a_mac_without_omlx_is_nothing(mac: MacMaker) -> None:
    one = mac()
    one.omlx.stop()
    assert not one.model(state="absent")["changed"]


def test_a_token_in_the_servers_own_words_is_hidden(mac: MacMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    one = mac(download_s=5.0)
    first = one.model(hf_token=TOKEN)
    task = one.omlx.state.tasks[-1]
    task.status, task.error = "failed", f"401 for token {TOKEN} and key {MAIN_KEY}"
    failed = one.model(hf_token=TOKEN, task_id=first["task_id"])
    failed.pop("invocation", None)
    assert failed["failed"] and not [s for s in (TOKEN, MAIN_KEY) if s in json.dumps(failed)]

    def refused(*_: Any) -> None:
        raise Refused(400, f"Invalid token {TOKEN} from {MAIN_KEY}")

    monkeypatch.setattr(one.omlx.state, "download", refused)
    failed = one.model(hf_token=TOKEN)
    failed.pop("invocation", None)
    assert failed["failed"] and not [s for s in (TOKEN, MAIN_KEY) if s in json.dumps(failed)]


def test_no_result_holds_a_secret(mac: MacMaker) -> None:
    one = mac(gated=True)
    for result in [
        *until_there(one, hf_token="hf_bad-token"),
        *until_there(one, hf_token=TOKEN, admin_key=MAIN_KEY),
    ]:
        result.pop("invocation", None)
        assert not [secret for secret in ("hf_bad-token", TOKEN, MAIN_KEY) if secret in json.dumps(result)]

"""Ways in which a naive role breaks somebody's oMLX, or believes what is not so; each one's rule has a test.

Those about addresses, keys, models and vectors in general are in the other files of this folder.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ansible.module_utils import omlx_download, omlx_reach, omlx_serving
from tests.doubles.omlx_downloads import HUB
from tests.unit.omlx_server.rig import HOST, Mac

MacMaker = Callable[..., Mac]
REPO, MODEL, SELF = "google/embeddinggemma-2", "embeddinggemma-2", "127.0.0.2"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omlx_download, "_EVERY_SECONDS", 0.05)


def download(one: Mac, **arguments: Any) -> dict[str, Any]:
    """One run of the role: start or join a download, and follow it to its end."""
    result = one.model(**arguments)
    return (
        one.model(task_id=result["task_id"], wait_seconds=20, **arguments) if "task_id" in result else result
    )


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def test_a_server_that_loads_is_never_started_a_second_time(mac: MacMaker) -> None:
    result = mac(loading_s=1.0).settings(start_command=["/no-such-program"])
    assert result["running"] and not result["changed"]


def test_only_what_the_role_wants_is_sent(mac: MacMaker) -> None:
    """No port (the app keeps its own), no default model, no empty token, no value that is refused."""
    one = mac(strict=True)
    one.settings(expose="all", agent_urls=[SELF])
    download(one)
    key = one.sub_key()["key"]
    one.model(state="absent")
    one.sub_key(state="absent")
    sent = [body for path, body in one.omlx.sent if path != "/admin/api/login"]
    assert sent == [
        {"host": "0.0.0.0"},
        {"repo_id": REPO},
        {"is_pinned": True},
        {"key": key, "name": "hermes-digup"},
        {"is_pinned": False},
        {"key": key},
    ]


def test_a_sub_key_that_somebody_deletes_meanwhile_is_deleted(mac: MacMaker) -> None:
    one = mac()
    one.omlx.add_sub_key("one-of-two")
    one.omlx.add_sub_key("two-of-two")
    save = one.omlx.state.save

    def both_go() -> None:
        one.omlx.state.settings["auth"]["sub_keys"] = []
        save()

    one.omlx.state.save = both_go  # type: ignore[method-assign] # the first deletion takes both
    assert one.sub_key(state="absent")["changed"]


def test_a_model_is_addressed_by_its_bare_id(mac: MacMaker) -> None:
    one = mac()
    one.omlx.add_model(REPO)
    assert one.model(model=REPO)["model"] == MODEL


def test_a_restart_waits_for_a_model_that_is_loading(mac: MacMaker) -> None:
    one = mac(load_s=60)
    one.omlx.add_model("mlx-community/tiny-chat", "llama")
    threading.Thread(target=one.omlx.state.load, args=("tiny-chat",), daemon=True).start()
    eventually(lambda: bool(one.omlx.state.loading))
    failed = one.settings(expose="all", agent_urls=[SELF], idle_timeout_seconds=0)
    assert failed["failed"] and "busy with tiny-chat" in failed["msg"]


def test_a_load_of_somebody_else_is_joined(mac: MacMaker) -> None:
    one = mac(load_s=1.5)
    one.omlx.add_model(REPO)
    threading.Thread(target=one.omlx.state.load, args=(MODEL,), daemon=True).start()
    eventually(lambda: bool(one.omlx.state.loading))
    assert one.model()["loaded"]


def test_a_pinned_model_that_fails_again_after_the_reload_is_said_at_once(mac: MacMaker) -> None:
    one = mac(old=True)
    one.omlx.add_model(REPO)
    one.omlx.state.model_settings[MODEL] = {"is_pinned": True, "model_type_override": "embedding"}
    one.omlx.state.discover(unload=True)
    failed = one.model()
    assert failed["failed"] and "previous load failure" in failed["msg"] and "October 2026" in failed["msg"]


def test_a_version_that_cannot_serve_the_model_is_said_before_the_download(mac: MacMaker) -> None:
    one = mac(old=True)
    for check in (True, False):
        failed = one.model(_ansible_check_mode=check)
        assert failed["failed"] and "0.4.5.dev1 cannot serve EmbeddingGemma 2" in failed["msg"]
    assert one.written() == []


@pytest.mark.parametrize("version", ["0.4.6", "0.7.0dev4", "1.0", ""])
def test_other_versions_are_judged_by_what_they_do(version: str) -> None:
    class Client:
        def version(self) -> str:
            return version

    omlx_serving.check_version(Client())


@pytest.mark.parametrize("state", ["present", "found"])
def test_another_kind_of_model_behind_the_name_is_said_and_left_alone(mac: MacMaker, state: str) -> None:
    one = mac()
    one.omlx.add_model(REPO, "llama")
    failed = one.model(state=state)
    assert failed["failed"] and "is of the kind llama" in failed["msg"] and one.written() == []


def test_a_full_disk_is_said_and_the_next_run_goes_on(mac: MacMaker) -> None:
    one = mac(disk_full=True)
    failed = download(one)
    assert failed["failed"] and "the disk is full" in failed["msg"] and "Free at least 2 GB" in failed["msg"]
    goes_on_from_half(one, disk_full=False)


def test_a_network_that_fails_in_the_middle_is_said_and_the_next_run_goes_on(mac: MacMaker) -> None:
    one = mac(cut_off=True)
    failed = download(one)
    assert failed["failed"] and "could not be reached" in failed["msg"] and "run this again" in failed["msg"]
    goes_on_from_half(one, cut_off=False)


def goes_on_from_half(one: Mac, **better: bool) -> None:
    one.omlx.state.personality = replace(one.omlx.state.personality, download_s=2.0, **better)
    began = one.model()
    eventually(lambda: one.omlx.state.tasks[-1].downloaded_size > 0)
    assert one.omlx.state.tasks[-1].downloaded_size > HUB[REPO][1] // 2
    assert one.model(task_id=began["task_id"], wait_seconds=20)["loaded"]


@pytest.mark.parametrize(
    "trouble",
    [
        {"gated": True},
        {"hub_down": True},
        {"cut_off": True},
        {"disk_full": True},
        {"old": True},
    ],
)
def test_every_failure_is_one_sentence_with_host_and_next_step(
    mac: MacMaker, trouble: dict[str, bool]
) -> None:
    sentence = download(mac(**trouble))["msg"]
    assert sentence.startswith(f"{HOST}: ") and sentence.endswith("run this again"), sentence
    assert "\n" not in sentence


def test_who_else_can_open_the_login_is_told_by_a_connection(
    mac: MacMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(omlx_reach, "_local_addresses", lambda: ["127.0.0.3"])
    one = mac()
    assert one.settings()["open_to"] == []
    port = one.settings(expose="all", agent_urls=[SELF])["port"]
    assert one.settings()["open_to"] == [f"http://127.0.0.3:{port}"]


def test_own_addresses_on_the_tailnet_or_loopback_are_not_the_local_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Probe:
        def __init__(self, address: str) -> None:
            self.address = address

        def __enter__(self) -> Probe:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def connect(self, _: object) -> None:
            if not self.address:
                raise OSError

        def getsockname(self) -> tuple[str, int]:
            return self.address, 1

    for address, told in (("192.168.1.5", ["192.168.1.5"]), ("100.64.0.9", []), ("127.0.0.1", []), ("", [])):
        monkeypatch.setattr(omlx_reach.socket, "socket", lambda *_, address=address: Probe(address))
        assert omlx_reach._local_addresses() == told


def test_no_warning_is_without_its_host(mac: MacMaker) -> None:
    one = mac()
    one.omlx.add_model("mlx-community/embeddinggemma-2-8bit")
    one.omlx.add_sub_key("one-of-two")
    one.omlx.add_sub_key("two-of-two")
    warnings = one.model()["warnings"] + one.sub_key()["warnings"]
    assert len(warnings) == 2 and all(text.startswith(f"{HOST}: ") for text in warnings), json.dumps(warnings)

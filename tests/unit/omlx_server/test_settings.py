"""oMLX runs and listens: what is changed, what is refused, and what others keep."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import omlx_settings
import pytest
from ansible.module_utils import omlx_client, omlx_reach, omlx_restart
from tests.doubles.omlx_downloads import Task
from tests.unit.omlx_server.rig import MAIN_KEY, Mac

SELF = "127.0.0.2"  # stands for the Mac's own tailnet address: bound by 0.0.0.0, not by 127.0.0.1
MacMaker = Callable[..., Mac]
GETADDRINFO = socket.getaddrinfo


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omlx_settings, "_PROOF_SECONDS", 2)
    monkeypatch.setattr(omlx_restart, "_NOTICED_SECONDS", 3)


def answers(host: str, port: int) -> bool:
    try:
        return omlx_client.exchange(f"http://{host}:{port}/health").status == 200
    except omlx_client.OmlxAwayError:
        return False


def names_of_this_machine(host: str, *rest: Any, **more: Any) -> Any:
    if host.endswith(".invalid"):
        raise socket.gaierror(8, "nodename nor servname provided, or not known")
    return GETADDRINFO(host, *rest, **more)


def test_exposing_saves_restarts_and_proves_and_then_changes_nothing(mac: MacMaker) -> None:
    one = mac()
    first = one.settings(expose="all", agent_urls=[SELF])
    assert first["changed"] and first["restarted"], first
    assert first["agent_urls"] == [f"http://{SELF}:{first['port']}"]
    assert json.loads(one.files()["settings.json"])["server"]["host"] == "0.0.0.0"
    assert answers(SELF, first["port"])
    one.omlx.requests.clear()
    second = one.settings(expose="all", agent_urls=[SELF])
    assert not second["changed"] and one.written() == [], second


def test_check_mode_tells_the_same_and_touches_nothing(mac: MacMaker) -> None:
    one = mac()
    before = one.files()
    told = one.settings(expose="all", agent_urls=[SELF], _ansible_check_mode=True, _ansible_diff=True)
    assert told["changed"] and told["restarted"]
    assert told["diff"]["before"]["host"] == "127.0.0.1"
    assert told["diff"]["after"]["host"] == "0.0.0.0"
    assert one.files() == before and one.written() == []


def test_not_exposing_leaves_the_address_alone(mac: MacMaker) -> None:
    one = mac()
    before = one.files()
    result = one.settings(expose="none", agent_urls=["mac.example.net"])
    assert not result["changed"] and result["version"] == "0.7.0"
    assert one.files() == before and one.written() == []


@pytest.mark.parametrize("key", [None, MAIN_KEY])
def test_an_open_server_is_never_exposed(mac: MacMaker, key: str | None) -> None:
    one = mac()
    one.omlx.state.settings["auth"].update(api_key=key, skip_api_key_verification=key is not None)
    one.omlx.state.save()
    before = one.files()
    result = one.settings(expose="all", agent_urls=[SELF])
    assert result["failed"]
    assert ("no main key" in result["msg"]) == (key is None)
    assert ("does not check keys" in result["msg"]) == (key is not None)
    assert one.files() == before and one.written() == []


def test_saved_is_not_bound_so_a_connection_decides_on_the_restart(mac: MacMaker) -> None:
    one = mac()
    one.omlx.state.settings["server"]["host"] = "0.0.0.0"
    one.omlx.state.save()
    result = one.settings(expose="all", agent_urls=[SELF])
    assert result["changed"] and one.written() == [("POST", "/admin/api/server/restart")]
    assert answers(SELF, result["port"])


def test_a_server_that_stays_on_loopback_is_named(mac: MacMaker) -> None:
    one = mac(stuck_on_loopback=True)
    result = one.settings(expose="all", agent_urls=[SELF])
    assert result["failed"] and f"http://{SELF}:" in result["msg"] and "Quit oMLX" in result["msg"]


def test_addresses_that_the_user_chose_well_stay(mac: MacMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    one = mac()
    monkeypatch.setattr(omlx_reach, "is_loopback", lambda host: host != "127.0.0.1")
    result = one.settings(expose="all", agent_urls=["127.0.0.1"])
    assert not result["changed"] and one.written() == []


def test_a_name_that_only_the_agent_knows_is_a_warning(
    mac: MacMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = mac()
    one.settings(expose="all", agent_urls=[SELF])
    monkeypatch.setattr(omlx_reach.socket, "getaddrinfo", names_of_this_machine)
    result = one.settings(expose="all", agent_urls=[SELF, "no-such-mac.invalid"])
    assert not result["changed"]
    assert any("no-such-mac.invalid" in warning for warning in result["warnings"])


def test_without_a_supervisor_the_restart_is_asked_of_a_person(mac: MacMaker) -> None:
    result = mac(supervised=False).settings(expose="all", agent_urls=[SELF])
    assert result["failed"] and "omlx_server_restart_command" in result["msg"]


def test_without_a_supervisor_the_command_restarts_it(mac: MacMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    one = mac(supervised=False)
    ran: list[list[str]] = []

    def run(_module: Any, command: list[str], _what: str) -> None:
        ran.append(command)
        one.omlx.restart()

    monkeypatch.setattr(omlx_settings, "run", run)
    result = one.settings(
        expose="all", agent_urls=[SELF], restart_command=["brew", "services", "restart", "omlx"]
    )
    assert result["changed"] and ran == [["brew", "services", "restart", "omlx"]]


def test_models_of_others_are_in_memory_again_after_the_restart(mac: MacMaker) -> None:
    one = mac()
    one.omlx.add_model("mlx-community/tiny-chat", "llama")
    one.omlx.state.load("tiny-chat")
    one.settings(expose="all", agent_urls=[SELF])
    assert one.omlx.state.loaded == {"tiny-chat"}


def test_a_restart_waits_for_a_download_of_the_user(mac: MacMaker) -> None:
    one = mac()
    task = Task("mlx-community/tiny-chat", "", status="downloading")
    one.omlx.state.tasks.append(task)
    result = one.settings(expose="all", agent_urls=[SELF], idle_timeout_seconds=0)
    assert result["failed"] and "mlx-community/tiny-chat" in result["msg"]
    assert one.written() == []
    task.status = "completed"
    assert one.settings(expose="all", agent_urls=[SELF])["changed"]


def test_a_refused_value_does_not_stay_in_memory(mac: MacMaker) -> None:
    one = mac()
    one.omlx.state.settings["server"]["port"] = 70000  # somebody else's mistake: every save is refused now
    result = one.settings(expose="all", agent_urls=[SELF], port=int(one.omlx.url.rpartition(":")[2]))
    assert result["failed"] and "Invalid port: 70000" in result["msg"]
    assert one.omlx.state.settings["server"]["host"] == "127.0.0.1"


def test_a_server_that_loads_its_models_is_waited_for(mac: MacMaker) -> None:
    assert mac(loading_s=1.0).settings()["running"]


def test_a_stopped_server_is_started(mac: MacMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    one = mac()
    one.omlx.stop()
    told = one.settings(start_command=["open", "-a", "oMLX"], _ansible_check_mode=True)
    assert told["changed"] and not told["running"]
    monkeypatch.setattr(omlx_settings, "run", lambda *_: one.omlx.start())
    result = one.settings(start_command=["open", "-a", "oMLX"])
    assert result["changed"] and result["running"]


def test_a_server_that_is_not_there_is_a_sentence_also_in_check_mode(mac: MacMaker) -> None:
    one = mac()
    one.omlx.stop()
    for check in (True, False):
        result = one.settings(_ansible_check_mode=check)
        assert result["failed"] and "Start it by hand" in result["msg"], result


def test_a_start_command_that_fails_is_quoted(mac: MacMaker) -> None:
    one = mac()
    one.omlx.stop()
    result = one.settings(start_command=["/bin/ls", "/no-such-folder"])
    assert result["failed"] and "/no-such-folder" in result["msg"]
    result = one.settings(start_command=["/no-such-program"])
    assert result["failed"] and "/no-such-program" in result["msg"]


@pytest.mark.parametrize("key", ["a-wrong-main-key", "a-sub-key-of-ours"])
def test_a_key_that_opens_nothing_is_named_but_not_shown(mac: MacMaker, key: str) -> None:
    one = mac()
    one.omlx.add_sub_key("a-sub-key-of-ours")
    result = one.settings(admin_key=key)
    assert result["failed"] and "omlx_server_admin_key" in result["msg"]
    assert key not in result["msg"]


def test_no_result_holds_the_main_key(mac: MacMaker) -> None:
    one = mac()
    for arguments in ({}, {"expose": "all", "agent_urls": [SELF]}, {"admin_key": MAIN_KEY}):
        result = one.settings(_ansible_diff=True, **arguments)
        result.pop("invocation", None)
        assert MAIN_KEY not in json.dumps(result)

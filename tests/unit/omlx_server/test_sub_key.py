"""Our sub key: one of our name, made once, handed out, rotated, deleted; other keys are not ours to touch."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.unit.omlx_server.rig import MAIN_KEY, Mac

MacMaker = Callable[..., Mac]
OTHER = {"key": "key-of-another-program", "name": "other", "created_at": "2026-01-01T00:00:00+00:00"}


def keys(one: Mac, name: str = "hermes-digup") -> list[str]:
    listed = json.loads(one.files()["settings.json"])["auth"]["sub_keys"]
    return [entry["key"] for entry in listed if entry["name"] == name]


def with_other(one: Mac) -> Mac:
    one.omlx.state.settings["auth"]["sub_keys"].append(dict(OTHER))
    one.omlx.state.save()
    return one


def test_a_key_is_made_once_and_then_found(mac: MacMaker) -> None:
    one = with_other(mac())
    first = one.sub_key()
    assert first["changed"] and len(first["key"]) == 64 and keys(one) == [first["key"]]
    one.omlx.requests.clear()
    second = one.sub_key()
    assert (second["changed"], second["key"], second["count"]) == (False, first["key"], 1)
    assert one.written() == [] and keys(one, "other") == [OTHER["key"]]


def test_two_macs_get_different_keys(mac: MacMaker) -> None:
    assert mac().sub_key()["key"] != mac().sub_key()["key"]


def test_check_mode_makes_no_key(mac: MacMaker) -> None:
    one = mac()
    told = one.sub_key(_ansible_check_mode=True)
    assert told["changed"] and told["key"] == "" and keys(one) == [] and one.written() == []


def test_several_keys_of_our_name_are_reported_and_the_oldest_is_used(mac: MacMaker) -> None:
    one = mac()
    one.omlx.add_sub_key("first-of-two")
    one.omlx.add_sub_key("second-of-two")
    result = one.sub_key()
    assert (result["changed"], result["key"], result["count"]) == (False, "first-of-two", 2)
    assert "2 sub keys named hermes-digup" in result["warnings"][0]


def test_a_rotation_never_leaves_a_moment_without_a_key(mac: MacMaker) -> None:
    one = with_other(mac())
    old = one.sub_key()["key"]
    new = one.sub_key(state="rotated")["key"]
    assert old != new and keys(one) == [old, new]
    assert one.sub_key(state="rotated")["key"] == new, "an interrupted rotation goes on with its key"
    told = one.sub_key(keep=new, _ansible_check_mode=True)
    assert told["changed"] and keys(one) == [old, new]
    assert one.sub_key(keep=new)["changed"] and keys(one) == [new]
    assert not one.sub_key(keep=new)["changed"]
    assert keys(one, "other") == [OTHER["key"]]


def test_a_key_to_keep_that_is_gone_deletes_nothing(mac: MacMaker) -> None:
    one = mac()
    one.omlx.add_sub_key("the-only-one")
    failed = one.sub_key(keep="a-key-that-is-gone")
    assert failed["failed"] and keys(one) == ["the-only-one"] and "a-key-that-is-gone" not in failed["msg"]


def test_absent_deletes_every_key_of_our_name_and_no_other(mac: MacMaker) -> None:
    one = with_other(mac())
    one.omlx.add_sub_key("first-of-two")
    one.omlx.add_sub_key("second-of-two")
    assert one.sub_key(state="absent", _ansible_check_mode=True)["changed"] and len(keys(one)) == 2
    result = one.sub_key(state="absent")
    assert (result["changed"], result["count"], keys(one)) == (True, 0, [])
    assert keys(one, "other") == [OTHER["key"]]
    assert not one.sub_key(state="absent")["changed"]


def test_absent_needs_no_server_when_there_is_no_key(mac: MacMaker) -> None:
    one = with_other(mac())
    one.omlx.stop()
    assert not one.sub_key(state="absent")["changed"]


def test_absent_with_a_key_and_no_server_says_what_to_start(mac: MacMaker) -> None:
    one = mac()
    one.omlx.add_sub_key("left-behind")
    one.omlx.stop()
    failed = one.sub_key(state="absent")
    assert failed["failed"] and "Start it" in failed["msg"] and "left-behind" not in failed["msg"]


def test_a_session_that_ended_is_opened_again(mac: MacMaker) -> None:
    one = mac()
    session = one.omlx.state.is_session
    asked: list[str] = []

    def first_time_ended(cookie: str) -> bool:
        asked.extend([cookie] if cookie else [])
        return len(asked) > 1 and session(cookie)

    one.omlx.state.is_session = first_time_ended  # type: ignore[method-assign] # the server forgets once
    assert one.sub_key()["changed"]
    assert one.omlx.requests.count(("POST", "/admin/api/login")) == 2, asked


def test_the_diff_counts_keys_and_shows_none(mac: MacMaker) -> None:
    one = mac()
    made = one.sub_key(_ansible_diff=True, admin_key=MAIN_KEY)
    assert made["diff"] == {"before": {"hermes-digup": 0}, "after": {"hermes-digup": 1}}
    made.pop("invocation", None)
    assert MAIN_KEY not in json.dumps(made)

"""hermes_mcp_server over the configurations that people have: what is not ours stays, in every mode."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

Call = Callable[..., dict[str, Any]]

ENTRY: dict[str, Any] = {
    "command": "/home/pi/bin/hermes-digup",
    "args": ["serve", "--results", "text"],
    "enabled": True,
    "timeout": 60,
    "keepalive_interval": 30,
    "tools": {"resources": False, "prompts": False},
    "env": {"DIGUP_CONFIG": "/home/pi/config.env"},
}

CONFIGS = {
    "comments": "# mine\nmodel: big  # the good one\n\n# servers\nmcp_servers:\n  weather:  # sunny\n"
    "    command: w\n# end\n",
    "anchors": "base: &base {timeout: 5, env: {A: b}}\nmcp_servers:\n  one:\n    <<: *base\n"
    "    command: x\n  two: *base\n",
    "flow style": "{model: big, mcp_servers: {weather: {command: w, args: [a, 'b']}}}\n",
    "CRLF": "model: big\r\nmcp_servers:\r\n  weather:\r\n    command: w  # sunny\r\n",
    "three servers": "mcp_servers:\n  a: {command: a}\n  b:\n    url: http://b\n  c:\n"
    "    command: c\n    enabled: no\n",
    "tabs in strings": 'prompt: "a\\tb\tc"\nmcp_servers:\n  weather:\n    command: w\n',
    "no servers yet": "model: big\nskills:\n- one\n- two\n",
    "an empty section": "model: big\nmcp_servers:\n",
    "wide lists": "skills:\n    - one\nmcp_servers:\n    weather:\n"
    "        args:\n            - a\n        command: w\n",
    "a document start": "---\nmodel: big\nmcp_servers:\n  weather:\n    command: w\n",
    "a byte order mark": "\ufeffmodel: big\n",
    "words for truth": "a: yes\nb: 'yes'\nc: off\nmcp_servers:\n  weather:\n    command: w\n",
    "block texts": "soul: |\n  line one\n    line two\n\nfolded: >-\n  a\n  b\nmcp_servers: {}\n",
    "comments alone": "# nothing here yet\n",
    "nothing": "",
}


@pytest.fixture(params=list(CONFIGS), ids=list(CONFIGS))
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_bytes(CONFIGS[request.param].encode())
    return path


def values(path: Path) -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8-sig")) or {}


def rest(path: Path) -> dict[str, Any]:
    """All settings but ours; a section without servers counts as none."""
    found = values(path)
    servers = {name: item for name, item in (found.pop("mcp_servers", None) or {}).items() if name != "digup"}
    return {**found, "mcp_servers": servers}


def present(call: Call, path: Path, **arguments: Any) -> dict[str, Any]:
    given = {
        "path": str(path),
        "name": "digup",
        "entry": ENTRY,
        "managed_path": str(path.parent / "managed.yaml"),
    }
    return call("hermes_mcp_server", **{**given, **arguments})


def absent(call: Call, path: Path, **arguments: Any) -> dict[str, Any]:
    return call("hermes_mcp_server", path=str(path), name="digup", state="absent", **arguments)


def test_the_entry_is_added_and_all_else_stays(call: Call, config: Path) -> None:
    before = rest(config)
    assert present(call, config)["changed"]
    assert values(config)["mcp_servers"]["digup"] == ENTRY
    assert rest(config) == before


def test_a_second_run_changes_no_byte(call: Call, config: Path) -> None:
    present(call, config)
    after_first = config.read_bytes()
    assert not present(call, config)["changed"]
    assert config.read_bytes() == after_first


def test_check_mode_says_what_would_change_and_writes_nothing(call: Call, config: Path) -> None:
    before = config.read_bytes()
    assert present(call, config, check=True)["changed"]
    assert config.read_bytes() == before
    present(call, config)
    assert not present(call, config, check=True)["changed"]
    with_entry = config.read_bytes()
    assert absent(call, config, check=True)["changed"]
    assert config.read_bytes() == with_entry


def test_absent_gives_back_the_settings_as_they_were(call: Call, config: Path) -> None:
    before = rest(config)
    present(call, config)
    assert absent(call, config)["changed"]
    assert (rest(config) if config.exists() else {"mcp_servers": {}}) == before
    assert not absent(call, config)["changed"]


def test_absent_where_it_never_was_changes_nothing(call: Call, config: Path) -> None:
    before = config.read_bytes()
    assert not absent(call, config)["changed"]
    assert config.read_bytes() == before


@pytest.mark.parametrize(
    "name", ["comments", "CRLF", "wide lists", "no servers yet", "three servers", "a document start"]
)
def test_every_line_that_was_there_is_still_there(call: Call, tmp_path: Path, name: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(CONFIGS[name].encode())
    present(call, path)
    assert set(CONFIGS[name].encode().split(b"\n")) <= set(path.read_bytes().split(b"\n"))
    absent(call, path)
    assert path.read_bytes() == CONFIGS[name].encode()


def test_line_ends_of_windows_stay(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(CONFIGS["CRLF"].encode())
    present(call, path)
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")


BROKEN = {
    "two sections": (
        "mcp_servers:\n  a: {command: a}\nmodel: x\nmcp_servers:\n  b: {command: b}\n",
        "mcp_servers twice",
    ),
    "no YAML": ("model: [1, 2\nmcp_servers: {\n", "not sound YAML"),
    "tabs as indentation": ("mcp_servers:\n\tweather:\n\t\tcommand: w\n", "not sound YAML"),
    "two documents": ("a: 1\n---\nb: 2\n", "not sound YAML"),
    "a list": ("- a\n- b\n", "not a mapping"),
    "a section that is a list": ("mcp_servers: [a, b]\n", "not a mapping"),
    "an entry twice": ("mcp_servers:\n  digup: {command: a}\n  digup: {command: b}\n", "digup twice"),
}


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize("check", [False, True], ids=["for real", "check mode"])
@pytest.mark.parametrize("name", list(BROKEN))
def test_a_file_that_cannot_be_changed_safely_is_refused(
    call: Call, tmp_path: Path, name: str, check: bool, state: str
) -> None:
    text, reason = BROKEN[name]
    path = tmp_path / "config.yaml"
    path.write_text(text)
    result = present(call, path, check=check, state=state)
    assert result["failed"]
    assert reason in result["msg"]
    assert path.read_text() == text


def test_a_text_that_is_not_utf8_is_refused(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"model: caf\xe9\n")
    assert "UTF-8" in present(call, path)["msg"]


@pytest.mark.parametrize("check", [False, True], ids=["for real", "check mode"])
def test_a_symbolic_link_stays_one_and_its_target_changes(call: Call, tmp_path: Path, check: bool) -> None:
    target, link = tmp_path / "dotfiles.yaml", tmp_path / "config.yaml"
    target.write_text("model: big\n")
    target.chmod(0o640)
    link.symlink_to(target)
    assert present(call, link, check=check)["changed"]
    assert link.is_symlink()
    assert ("mcp_servers" in values(target)) is not check
    assert target.stat().st_mode & 0o777 == 0o640
    absent(call, link)
    assert link.is_symlink()
    assert values(target) == {"model": "big"}


def test_the_mode_of_the_file_stays_and_a_new_file_is_private(call: Call, tmp_path: Path) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text("model: big\n")
    old.chmod(0o644)
    present(call, old)
    present(call, new)
    assert old.stat().st_mode & 0o777 == 0o644
    assert new.stat().st_mode & 0o777 == 0o600


def test_nothing_else_is_left_in_the_folder(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    present(call, path)
    assert [item.name for item in tmp_path.iterdir()] == ["config.yaml"]
    absent(call, path)
    assert list(tmp_path.iterdir()) == []


def test_what_the_user_decided_about_our_entry_is_kept_and_said(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "mcp_servers:\n  digup:\n    command: old\n    enabled: no\n    sampling: {enabled: false}\n"
        "    tools: {exclude: [search_code], resources: true}\n    env: {MY_OWN: secret-value}\n"
    )
    result = present(call, path)
    entry = values(path)["mcp_servers"]["digup"]
    assert entry["command"] == ENTRY["command"]
    assert entry["enabled"] == "no"  # still the word that was there
    assert entry["sampling"] == {"enabled": False}
    assert entry["tools"] == {"exclude": ["search_code"], "resources": False, "prompts": False}
    assert entry["env"] == {"MY_OWN": "secret-value", "DIGUP_CONFIG": "/home/pi/config.env"}
    assert any("switched off" in note for note in result["notes"])
    assert any("tools.exclude: search_code" in note for note in result["notes"])
    assert "secret-value" not in json.dumps(result["diff"])


def test_another_spelling_of_the_same_values_is_no_change(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "mcp_servers:\n  digup:\n    env:\n      DIGUP_CONFIG: '/home/pi/config.env'\n"
        "    keepalive_interval: 30.0\n    timeout: 60\n    tools:\n      prompts: no\n      resources: off\n"
        '    args:\n      - serve\n      - "--results"\n'
        "      - text\n    command: /home/pi/bin/hermes-digup\n"
    )
    before = path.read_bytes()
    assert not present(call, path)["changed"]
    assert path.read_bytes() == before


def test_an_entry_that_shares_an_anchor_changes_alone(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "mcp_servers:\n  digup: &shared\n    command: old\n    tools: &tools {include: [x]}\n"
        "  b: *shared\n  c:\n    tools: *tools\n"
    )
    assert present(call, path)["changed"]
    servers = values(path)["mcp_servers"]
    assert servers["digup"]["command"] == ENTRY["command"]
    assert servers["b"] == {"command": "old", "tools": {"include": ["x"]}}
    assert servers["c"] == {"tools": {"include": ["x"]}}
    assert not present(call, path)["changed"]


def test_an_entry_with_a_merge_is_corrected(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "base: &base {timeout: 5}\nmcp_servers:\n  digup:\n    <<: *base\n"
        "    command: old\n  b:\n    <<: *base\n"
    )
    assert present(call, path)["changed"]
    found = values(path)
    assert found["mcp_servers"]["digup"] == {key: value for key, value in ENTRY.items() if key != "enabled"}
    assert found["mcp_servers"]["b"] == {"timeout": 5}
    assert not present(call, path)["changed"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("platform_toolsets:\n  cli: [web, weather]\n", "platform_toolsets.cli lists other MCP servers"),
        ("platform_toolsets:\n  telegram: [no_mcp]\n", "platform_toolsets.telegram says no_mcp"),
        ("agent:\n  disabled_toolsets: [mcp-digup]\n", "agent.disabled_toolsets lists mcp-digup"),
    ],
)
def test_settings_that_hide_the_tools_are_said_and_left(
    call: Call, tmp_path: Path, settings: str, said: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("mcp_servers:\n  weather: {command: w}\n" + settings)
    before = rest(path)
    assert any(said in note for note in present(call, path)["notes"])
    assert rest(path) == before


@pytest.mark.parametrize("listed", ["[web, file]", "[weather, digup]", "[off_server]"])
def test_lists_that_hide_nothing_are_not_mentioned(call: Call, tmp_path: Path, listed: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "mcp_servers:\n  weather: {command: w}\n  off_server: {command: o, enabled: false}\n"
        f"platform_toolsets:\n  cli: {listed}\n"
    )
    assert present(call, path)["notes"] == []


def test_a_managed_layer_that_wins_is_said(call: Call, tmp_path: Path) -> None:
    (tmp_path / "managed.yaml").write_text("mcp_servers:\n  digup: {command: /other, timeout: 60}\n")
    notes = present(call, tmp_path / "config.yaml")["notes"]
    assert len(notes) == 1
    assert "fixes command of digup" in notes[0]


class TestAutoLoad:
    """The skill on the list of those that every session begins with."""

    @pytest.mark.parametrize(
        "before",
        [
            "",
            "skills:\n",
            "skills: {}\n",
            "skills:\n  auto_load: []\n",
            "skills:\n  auto_load: [theirs]  # mine\n",
        ],
    )
    def test_it_is_added_once_beside_others_and_goes_again(
        self, call: Call, tmp_path: Path, before: str
    ) -> None:
        path = tmp_path / "config.yaml"
        path.write_text("model: big\n" + before)
        theirs = [name for name in ("theirs",) if name in before]
        assert present(call, path, auto_load="digup-search")["changed"]
        assert values(path)["skills"]["auto_load"] == [*theirs, "digup-search"]
        assert not present(call, path, auto_load="digup-search")["changed"]
        absent(call, path, auto_load="digup-search")
        assert ((values(path).get("skills") or {}).get("auto_load") or []) == theirs

    def test_a_value_that_is_no_list_is_refused(self, call: Call, tmp_path: Path) -> None:
        path = tmp_path / "config.yaml"
        path.write_text("skills: {auto_load: theirs}\n")
        assert "cannot be changed without touching" in present(call, path, auto_load="digup-search")["msg"]
        assert path.read_text() == "skills: {auto_load: theirs}\n"

    def test_without_the_wish_the_list_is_left_alone(self, call: Call, tmp_path: Path) -> None:
        path = tmp_path / "config.yaml"
        path.write_text("skills: {auto_load: [digup-search]}\n")
        present(call, path)
        assert values(path)["skills"] == {"auto_load": ["digup-search"]}


class TestWithoutRuamel:
    @pytest.fixture(autouse=True)
    def none(self, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
        from ansible.module_utils import hermes_config

        monkeypatch.setattr(hermes_config, "HAVE_RUAMEL", False)

    def test_check_mode_says_that_it_would_add(self, call: Call, tmp_path: Path) -> None:
        result = present(call, tmp_path / "config.yaml", check=True)
        assert result["changed"]
        assert "Would add digup" in result["notes"][0]

    def test_absent_where_it_never_was_changes_nothing(self, call: Call, tmp_path: Path) -> None:
        assert not absent(call, tmp_path / "config.yaml")["changed"]

    def test_a_real_change_is_refused(self, call: Call, tmp_path: Path) -> None:
        assert "ruamel.yaml" in present(call, tmp_path / "config.yaml")["msg"]

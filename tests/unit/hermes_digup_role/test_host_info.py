"""What the role learns about a host: its Pythons, its Hermes, and whether a server answers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., dict[str, Any]]
GOOD = {"version": "3.11.2", "bits": 64, "fts": True, "venv": True}


class TestPython:
    def test_this_very_python_will_do(self, call: Call) -> None:
        result = call("digup_python_info", python=sys.executable)
        assert (result["path"], result["problem"]) == (sys.executable, "")
        assert result["version"] == ".".join(map(str, sys.version_info[:3]))

    def test_one_is_found_without_being_named(self, call: Call) -> None:
        assert call("digup_python_info")["path"]

    def test_one_that_is_not_there_is_named_in_a_sentence(self, call: Call) -> None:
        result = call("digup_python_info", python="/nowhere/python3")
        assert (result["path"], result["problem"]) == ("", "/nowhere/python3 does not run")

    @pytest.mark.parametrize(
        ("found", "reason"),
        [
            ({**GOOD, "version": "3.9.18"}, "is 3.9.18, and 3.10 or newer is needed"),
            ({**GOOD, "bits": 32}, "has 32 bits"),
            ({**GOOD, "fts": False, "why": "no such module: fts5"}, "no such module: fts5"),
            (None, "does not run"),
        ],
    )
    def test_what_is_wrong_with_one_is_said(
        self, call: Call, found: dict[str, Any] | None, reason: str
    ) -> None:
        from digup_python_info import objection

        assert reason in objection(found, "3.10")

    def test_one_that_can_make_environments_comes_first(self, call: Call) -> None:
        from digup_python_info import choose

        without = {**GOOD, "venv": False}
        assert choose([("a", without), ("b", GOOD)], "3.10")[0] == "b"
        assert choose([("a", without), ("b", None)], "3.10")[0] == "a"


class TestHermes:
    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        command = tmp_path / ".local/bin/hermes"
        command.parent.mkdir(parents=True)
        command.write_text(
            '#!/bin/sh\nmkdir -p "$HERMES_HOME/logs"\necho "Hermes Agent v0.19.0 (2026.7.20)"\n'
        )
        command.chmod(0o755)
        return tmp_path

    def test_it_is_found_with_its_version_and_home(self, call: Call, home: Path) -> None:
        result = call("hermes_info", home=str(home))
        assert (result["command"], result["version"]) == (str(home / ".local/bin/hermes"), "0.19.0")
        assert [item["config"] for item in result["homes"]] == [str(home / ".hermes/config.yaml")]
        assert not (home / ".hermes").exists()  # asking leaves no trace

    def test_a_host_without_it_has_no_homes(self, call: Call, tmp_path: Path) -> None:
        result = call("hermes_info", home=str(tmp_path), command="/nowhere/hermes")
        assert (result["command"], result["homes"], result["every_home"]) == ("", [], [])

    def test_none_of_several_profiles_is_picked_silently(self, call: Call, home: Path) -> None:
        (home / ".hermes/profiles/coder").mkdir(parents=True)
        (home / ".hermes/profiles/Not A Profile").mkdir()
        (home / ".hermes/active_profile").write_text("coder\n")
        result = call("hermes_info", home=str(home))
        assert result["undecided"]
        assert (result["profiles"], result["active"]) == (["default", "coder"], "coder")
        chosen = call("hermes_info", home=str(home), profiles=["coder", "nobody"])
        assert not chosen["undecided"]
        assert [item["home"] for item in chosen["homes"]] == [str(home / ".hermes/profiles/coder")]
        assert chosen["unknown"] == ["nobody"]

    def test_a_gateways_unit_belongs_to_the_home_it_names(self, call: Call, home: Path) -> None:
        units = home / ".config/systemd/user"
        units.mkdir(parents=True)
        (home / ".hermes/profiles/coder").mkdir(parents=True)
        for name, folder in (
            ("hermes-gateway", ".hermes"),
            ("hermes-gateway-coder", ".hermes/profiles/coder"),
        ):
            (units / f"{name}.service").write_text(f'[Service]\nEnvironment="HERMES_HOME={home / folder}"\n')
        result = call("hermes_info", home=str(home))
        found = {item["profile"]: item["unit"] for item in result["every_home"]}
        assert found == {"default": "hermes-gateway.service", "coder": "hermes-gateway-coder.service"}


SERVER = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        result = {"serverInfo": {"name": "double", "version": "1"}}
    elif request["method"] == "tools/list":
        result = {"tools": [{"name": "one"}, {"name": os.environ.get("SECOND", "none")}]}
    elif request["method"] == "tools/call":
        asked = request["params"]
        result = {"structuredContent": asked, "content": [{"text": "sorry"}]}
        result["isError"] = asked["name"] == "bad"
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message"}))
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


class TestServer:
    def ask(self, call: Call, tmp_path: Path, code: str, **arguments: Any) -> dict[str, Any]:
        return call("mcp_stdio_info", command=[sys.executable, "-c", code], home=str(tmp_path), **arguments)

    def test_a_good_server_lists_its_tools(self, call: Call, tmp_path: Path) -> None:
        result = self.ask(call, tmp_path, SERVER, environment={"SECOND": "two"})
        assert (result["tools"], result["server"], result["problem"]) == (["one", "two"], "double 1", "")

    def test_it_sees_only_what_hermes_passes_on(
        self, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECOND", "from the login")
        assert self.ask(call, tmp_path, SERVER)["tools"] == ["one", "none"]

    def test_a_tool_is_called_and_its_answer_and_memory_come_back(self, call: Call, tmp_path: Path) -> None:
        result = self.ask(call, tmp_path, SERVER, tool="one", arguments={"limit": 1})
        assert result["answer"] == {"name": "one", "arguments": {"limit": 1}}
        assert result["problem"] == ""
        assert result["memory_kb"] > 1000

    def test_a_tool_that_fails_is_a_sentence(self, call: Call, tmp_path: Path) -> None:
        result = self.ask(call, tmp_path, SERVER, tool="bad")
        assert (result["answer"], result["problem"]) == ({}, "bad failed: sorry")
        assert result["tools"] == ["one", "none"]

    @pytest.mark.parametrize(
        ("code", "problem"),
        [
            ("raise SystemExit('no index here')", "it ended before it answered (no index here)"),
            ("print('hello')", "not the protocol"),
            ('import sys; sys.stdin.readline(); print(\'{"id": 1, "error": "nope"}\')', "nope"),
        ],
    )
    def test_a_bad_server_is_a_sentence(self, call: Call, tmp_path: Path, code: str, problem: str) -> None:
        result = self.ask(call, tmp_path, code)
        assert problem in result["problem"]
        assert result["tools"] == []

    def test_a_silent_server_is_ended(self, call: Call, tmp_path: Path) -> None:
        result = self.ask(call, tmp_path, "import sys; sys.stdin.read()", timeout=1)
        assert result["problem"] == "it did not answer within 1 s"

    def test_a_missing_command_is_a_sentence(self, call: Call, tmp_path: Path) -> None:
        result = call("mcp_stdio_info", command=["/nowhere/server"], home=str(tmp_path))
        assert "/nowhere/server cannot be started" in result["problem"]

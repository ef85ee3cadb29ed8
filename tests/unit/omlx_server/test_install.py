"""Where the role looks for oMLX, and what it makes of files that others wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import omlx_install


def find(home: Path, environ: dict[str, str] | None = None, **given: Any) -> omlx_install.Install:
    return omlx_install.discover(str(home), environ=environ or {}, **given)


def write_settings(base: Path, **content: Any) -> None:
    base.mkdir(parents=True, exist_ok=True)
    (base / "settings.json").write_text(json.dumps(content))


@pytest.fixture
def support(tmp_path: Path) -> Path:
    folder = tmp_path / "Library" / "Application Support" / "oMLX"
    folder.mkdir(parents=True)
    return folder


def test_without_any_file_the_defaults_stand(tmp_path: Path) -> None:
    install = find(tmp_path)
    assert install == (str(tmp_path / ".omlx"), False, 8000, ["127.0.0.1"], "", [])


def test_the_base_folder_is_sought_in_the_stated_order(tmp_path: Path, support: Path) -> None:
    (support / "config.json").write_text(json.dumps({"base_path": "~/from-config"}))
    assert find(tmp_path).base_dir == str(tmp_path / "from-config")
    (support / "base-path").write_text("~/from-file\n")
    assert find(tmp_path).base_dir == str(tmp_path / "from-file")
    environ = {"OMLX_BASE_PATH": "/from/environment"}
    assert find(tmp_path, environ).base_dir == "/from/environment"
    assert find(tmp_path, environ, base_dir="~/given").base_dir == str(tmp_path / "given")


def test_an_empty_base_path_file_means_the_default(tmp_path: Path, support: Path) -> None:
    (support / "base-path").write_text("\n")
    assert find(tmp_path).base_dir == str(tmp_path / ".omlx")


def test_port_and_key_are_given_or_from_the_environment_or_the_settings(tmp_path: Path) -> None:
    write_settings(tmp_path / ".omlx", server={"port": 8111}, auth={"api_key": "file-key"})
    environ = {"OMLX_PORT": "8222", "OMLX_API_KEY": "environment-key"}
    assert find(tmp_path)[2::2] == (8111, "file-key")
    assert find(tmp_path, environ)[2::2] == (8222, "environment-key")
    assert find(tmp_path, environ, port=8333, admin_key="given-key")[2::2] == (8333, "given-key")


def test_an_older_app_that_keeps_the_port_itself_is_understood(tmp_path: Path, support: Path) -> None:
    (support / "config.json").write_text(json.dumps({"port": 9123}))
    install = find(tmp_path)
    assert (install.port, install.found) == (9123, True)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not json",
        "[]",
        '{"server": [], "auth": 7}',
        '{"server": {"port": true}, "auth": {"api_key": {}}}',
        '{"server": {"port": 70000, "host": 5}, "auth": {"sub_keys": [1, null]}}',
    ],
)
def test_settings_that_make_no_sense_count_as_absent(tmp_path: Path, content: str) -> None:
    (tmp_path / ".omlx").mkdir()
    (tmp_path / ".omlx" / "settings.json").write_text(content)
    install = find(tmp_path)
    assert (install.port, install.main_key, install.sub_keys) == (8000, "", [])


@pytest.mark.parametrize(
    ("saved", "urls"),
    [
        ("127.0.0.1", ["http://127.0.0.1:1"]),
        ("0.0.0.0", ["http://127.0.0.1:1"]),
        ("::", ["http://127.0.0.1:1", "http://[::1]:1"]),
        ("100.64.0.9", ["http://127.0.0.1:1", "http://100.64.0.9:1"]),
        ("127.0.0.1, 100.64.0.9", ["http://127.0.0.1:1", "http://100.64.0.9:1"]),
        (["::1"], ["http://127.0.0.1:1", "http://[::1]:1"]),
    ],
)
def test_a_binding_address_becomes_one_that_can_be_connected_to(saved: Any, urls: list[str]) -> None:
    assert omlx_install.loopback_urls(omlx_install.split_hosts(saved), 1) == urls


def test_the_apps_own_command_restarts_it(tmp_path: Path) -> None:
    tool = tmp_path / ".omlx" / "bin" / "omlx"
    tool.parent.mkdir(parents=True)
    tool.touch(mode=0o755)
    assert omlx_install.program(str(tmp_path), "restart") == [str(tool), "restart"]


def test_without_app_and_homebrew_there_is_no_command(tmp_path: Path) -> None:
    assert omlx_install.program(str(tmp_path), "restart") == []


def test_homebrews_own_folder_is_looked_in_last(tmp_path: Path) -> None:
    brew = tmp_path / "brewed" / "bin" / "brew"
    brew.parent.mkdir(parents=True)
    brew.touch(mode=0o755)
    environ = {"HOMEBREW_PREFIX": str(tmp_path / "brewed")}
    assert omlx_install.program(str(tmp_path), "start", environ) == []
    brew.with_name("omlx").touch()
    assert omlx_install.program(str(tmp_path), "start", environ) == [str(brew), "services", "start", "omlx"]

"""digup_environment where nothing can be built: what it says, and that what was there stays.

Building, proving and switching for real: tests/integration/hermes_digup_role.
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def manage(call: Call, tmp_path: Path) -> Call:
    """The module on a home that has `one` in use and `zero` from before."""
    for name in ("zero", "one"):
        (tmp_path / "venvs" / name).mkdir(parents=True)
        (tmp_path / "venvs" / name / ".complete").touch()
    (tmp_path / "venv").symlink_to(tmp_path / "venvs/one")
    (tmp_path / "venv-former").symlink_to(tmp_path / "venvs/zero")

    def run(name: str, **arguments: Any) -> dict[str, Any]:
        given = {
            "folder": str(tmp_path / "venvs"),
            "current": str(tmp_path / "venv"),
            "former": str(tmp_path / "venv-former"),
            "name": name,
            "python": sys.executable,
            "incoming": str(tmp_path / "incoming"),
            "home": str(tmp_path),
            "host": "raspberrypi",
            "patience": 0,
        }
        return call("digup_environment", **{**given, **arguments})

    return run


def in_use(tmp_path: Path) -> tuple[str, str]:
    return (tmp_path / "venv").readlink().name, (tmp_path / "venv-former").readlink().name


def test_the_one_in_use_is_no_change(manage: Call, tmp_path: Path) -> None:
    assert not manage("one")["changed"]
    assert in_use(tmp_path) == ("one", "zero")


def test_a_whole_one_is_switched_to_and_older_ones_go(manage: Call, tmp_path: Path) -> None:
    (tmp_path / "venvs/two").mkdir()
    (tmp_path / "venvs/two/.complete").touch()
    assert manage("two")["changed"]
    assert in_use(tmp_path) == ("two", "one")
    assert not (tmp_path / "venvs/zero").exists()


def test_what_another_run_has_just_brought_stays(manage: Call, tmp_path: Path) -> None:
    (tmp_path / "venvs/three.incoming").mkdir()
    assert not manage("one")["changed"]
    assert (tmp_path / "venvs/three.incoming").exists()


def test_check_mode_says_what_would_be_built(manage: Call, tmp_path: Path) -> None:
    result = manage("two", check=True)
    assert result["changed"] and "Would build" in result["told"]
    assert not manage("one", check=True)["changed"]
    assert manage("", state="former", check=True)["changed"]
    assert in_use(tmp_path) == ("one", "zero")


def test_a_second_run_waits_and_then_says_that_another_is_at_work(manage: Call, tmp_path: Path) -> None:
    with (tmp_path / "venvs/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = manage("one")["msg"]
    assert "raspberrypi: another run has been at work on this home" in said


def test_too_little_room_is_said_with_figures_before_anything_is_built(
    manage: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "venvs/one/library").write_bytes(b"x" * (8 << 20))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 0, 9 << 20))
    said = manage("two")["msg"]
    assert "venvs has 9 MB free, and the program needs 10 MB. The version that was there before" in said
    assert in_use(tmp_path) == ("one", "zero")


def test_a_python_that_fails_leaves_the_one_in_use_and_nothing_half_made(
    manage: Call, tmp_path: Path
) -> None:
    said = manage("two", python="/nowhere/python")["msg"]
    assert "its environment could not be made" in said and "goes on working" in said
    assert in_use(tmp_path) == ("one", "zero")
    assert not (tmp_path / "venvs/two").exists()


def test_the_way_back_is_there_once(manage: Call, tmp_path: Path) -> None:
    assert manage("", state="former")["changed"]
    assert (tmp_path / "venv").readlink().name == "zero"
    assert "no former version" in manage("", state="former")["msg"]

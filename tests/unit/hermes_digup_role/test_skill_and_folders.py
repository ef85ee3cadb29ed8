"""hermes_skill keeps what the agent made of a skill; digup_empty_folders takes only what is empty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "skills/productivity/digup-search"


@pytest.fixture
def skill(call: Call, folder: Path, tmp_path: Path) -> Call:
    def run(**arguments: Any) -> dict[str, Any]:
        return call("hermes_skill", path=str(folder), kept_dir=str(tmp_path / "kept"), **arguments)

    return run


def test_it_is_installed_once(skill: Call, folder: Path) -> None:
    assert skill(content="one\n")["changed"]
    assert (folder / "SKILL.md").read_text() == "one\n"
    assert not skill(content="one\n")["changed"]


def test_our_own_update_puts_nothing_aside(skill: Call, folder: Path, tmp_path: Path) -> None:
    skill(content="one\n")
    result = skill(content="two\n")
    assert (folder / "SKILL.md").read_text() == "two\n"
    assert result["kept"] == ""
    assert not (tmp_path / "kept").exists()


def test_the_agents_own_text_is_put_aside_and_said(skill: Call, folder: Path) -> None:
    skill(content="one\n")
    (folder / "SKILL.md").write_text("better\n")
    assert skill(content="one\n", check=True)["kept"]
    assert (folder / "SKILL.md").read_text() == "better\n"
    result = skill(content="one\n")
    assert Path(result["kept"]).read_text() == "better\n"
    assert (folder / "SKILL.md").read_text() == "one\n"
    assert skill(content="one\n")["kept"] == ""


def test_a_skill_of_somebody_else_under_our_name_is_put_aside(skill: Call, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("theirs\n")
    assert Path(skill(content="one\n")["kept"]).read_text() == "theirs\n"


def test_check_mode_writes_nothing(skill: Call, folder: Path) -> None:
    assert skill(content="one\n", check=True)["changed"]
    assert not folder.exists()


def test_absent_leaves_no_folder_of_ours(skill: Call, folder: Path, tmp_path: Path) -> None:
    skill(content="one\n")
    (folder.parent.parent / "other").mkdir()
    assert skill(state="absent", check=True)["changed"]
    assert folder.exists()
    assert skill(state="absent")["changed"]
    assert [item.name for item in tmp_path.rglob("*")] == ["skills", "other"]
    assert not skill(state="absent")["changed"]


def test_absent_keeps_the_agents_text_and_its_other_files(skill: Call, folder: Path) -> None:
    skill(content="one\n")
    (folder / "SKILL.md").write_text("better\n")
    (folder / "notes.md").write_text("more\n")
    result = skill(state="absent")
    assert Path(result["kept"]).read_text() == "better\n"
    assert [item.name for item in folder.iterdir()] == ["notes.md"]


def test_only_empty_folders_go_inner_ones_first(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a/inner").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/file").touch()
    paths = [str(tmp_path / name) for name in ("a/inner", "a", "b", "never")]
    planned = call("digup_empty_folders", paths=paths, check=True)
    assert (tmp_path / "a/inner").is_dir()
    done = call("digup_empty_folders", paths=paths)
    assert planned["removed"] == done["removed"] == paths[:2]
    assert done["left"] == [paths[2]]
    assert [item.name for item in tmp_path.iterdir()] == ["b"]
    assert not call("digup_empty_folders", paths=paths)["changed"]

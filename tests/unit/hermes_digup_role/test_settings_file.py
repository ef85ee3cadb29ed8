"""digup_settings_file: our keys in a file that people also edit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., dict[str, Any]]
HEADER = "# Settings."
MINE = (
    "# mine\nDIGUP_STALE_HOURS = 48\n\nDIGUP_EMBED_URL='http://old'\nnonsense\nDIGUP_HTTP_TOKEN=their-token\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.env"


@pytest.fixture
def manage(call: Call, path: Path) -> Call:
    def run(**arguments: Any) -> dict[str, Any]:
        return call("digup_settings_file", path=str(path), header=HEADER, **arguments)

    return run


def test_a_new_file_is_private_and_has_a_header(manage: Call, path: Path) -> None:
    assert manage(values={"DIGUP_EMBED_URL": "http://a"})["changed"]
    assert path.read_text() == "# Settings.\nDIGUP_EMBED_URL=http://a\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_only_our_keys_change(manage: Call, path: Path) -> None:
    path.write_text(MINE)
    result = manage(values={"DIGUP_EMBED_URL": "http://new", "DIGUP_EMBED_API": "openai"})
    assert path.read_text() == MINE.replace("'http://old'", "http://new") + "DIGUP_EMBED_API=openai\n"
    assert result["others"] == ["DIGUP_HTTP_TOKEN", "DIGUP_STALE_HOURS"]


def test_the_same_value_in_quotes_is_no_change(manage: Call, path: Path) -> None:
    path.write_text(MINE)
    path.chmod(0o600)
    assert not manage(values={"DIGUP_EMBED_URL": "http://old"})["changed"]
    assert path.read_text() == MINE


def test_a_file_that_others_can_read_becomes_private(manage: Call, path: Path) -> None:
    path.write_text("A=b\n")
    path.chmod(0o644)
    assert manage(values={"A": "b"})["changed"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert not manage(values={"A": "b"})["changed"]


def test_an_empty_value_removes_the_key_and_a_double_line_becomes_one(manage: Call, path: Path) -> None:
    path.write_text("A=1\nB=2\nA=3\n")
    manage(values={"A": "4", "B": ""})
    assert path.read_text() == "A=4\n"


def test_check_mode_writes_nothing(manage: Call, path: Path) -> None:
    assert manage(check=True, values={"A": "b"})["changed"]
    assert not path.exists()
    path.write_text(MINE)
    assert manage(check=True, values={"A": "b"})["changed"]
    assert path.read_text() == MINE


@pytest.mark.parametrize("before", ["", "KEY=old-secret\n"])
def test_no_secret_is_in_the_result(manage: Call, path: Path, before: str) -> None:
    path.write_text(before + "DIGUP_HTTP_TOKEN=their-token\n")
    result = manage(secrets={"KEY": "new-secret"})
    assert result["changed"]
    shown = json.dumps({**result, "invocation": None})
    assert not [secret for secret in ("old-secret", "new-secret", "their-token") if secret in shown]
    assert result["diff"]["before"] != result["diff"]["after"]


@pytest.mark.parametrize("value", [" padded ", "'quoted'", '"quoted"', "a=b#c", "x y"])
def test_every_value_reads_back_as_itself(manage: Call, path: Path, value: str) -> None:
    manage(values={"A": value})
    from digup_settings_file import parse

    assert parse(path.read_text().splitlines()[-1]) == ("A", value)
    assert not manage(values={"A": value})["changed"]


def test_a_value_of_two_lines_is_refused_without_being_shown(manage: Call, path: Path) -> None:
    result = manage(secrets={"KEY": "one\nDIGUP_INDEX_DIR=/"})
    assert "more than one line" in result["msg"]
    assert not path.exists()


def test_a_key_that_is_made_is_random_long_and_hidden_and_made_once(manage: Call, path: Path) -> None:
    path.write_text("A=1\n")
    result = manage(made=["TOKEN"])
    token = path.read_text().splitlines()[-1].removeprefix("TOKEN=")
    assert len(token) >= 40 and token not in json.dumps(result)
    assert not manage(made=["TOKEN"])["changed"]
    manage(made=["TOKEN"], state="absent")
    assert path.read_text() == "A=1\n"
    manage(made=["TOKEN"])
    assert token not in path.read_text()


def test_a_value_that_the_user_gave_is_not_made_anew(manage: Call, path: Path) -> None:
    path.write_text(MINE)
    path.chmod(0o600)
    assert not manage(made=["DIGUP_HTTP_TOKEN"])["changed"]


def test_absent_removes_our_keys_and_keeps_the_users(manage: Call, path: Path) -> None:
    path.write_text(MINE)
    assert manage(values={"DIGUP_EMBED_URL": "x"}, state="absent")["changed"]
    assert "DIGUP_EMBED_URL" not in path.read_text()
    assert "DIGUP_HTTP_TOKEN=their-token" in path.read_text()


def test_absent_removes_a_file_that_only_held_ours(manage: Call, path: Path) -> None:
    manage(values={"A": "b"})
    assert manage(values={"A": "x"}, state="absent")["changed"]
    assert not path.exists()
    assert not manage(values={"A": "x"}, state="absent")["changed"]


def test_a_symbolic_link_stays_one(manage: Call, path: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.env"
    target.write_text("A=1\n")
    path.symlink_to(target)
    manage(values={"A": "2"})
    assert path.is_symlink()
    assert target.read_text() == "A=2\n"


def test_nothing_is_lost_when_somebody_else_writes_at_the_same_moment(path: Path) -> None:
    from ansible.module_utils.digup_text_file import TextFile, TextFileError

    path.write_text("A=1\n")
    found = TextFile(path)
    path.write_text("A=1\nB=theirs\n")
    with pytest.raises(TextFileError, match="changed by somebody else"):
        found.write("A=2\n")
    assert path.read_text() == "A=1\nB=theirs\n"
    assert [item.name for item in path.parent.iterdir()] == ["config.env"]

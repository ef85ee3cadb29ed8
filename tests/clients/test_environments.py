"""A client that cannot be had is named, and is a failure where nothing may be skipped."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.clients import environments


@pytest.fixture(autouse=True)
def _a_bare_machine(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)


def test_what_is_missing_is_skipped_by_name() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"inspector \d.* cannot be had: there is no npm"):
        environments.inspector()


def test_nothing_is_skipped_in_ci(monkeypatch) -> None:
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match="there is no npm"):
        environments.inspector()


def test_an_environment_is_made_once_and_anew_when_its_pins_change(tmp_path) -> None:
    made: list[str] = []
    pins = tmp_path / "pins"

    def make(folder: Path, given: Path) -> None:
        made.append(given.read_text())
        (folder / "content").write_text(given.read_text())

    for text in ("one", "one", "two"):
        pins.write_text(text)
        folder = environments.kept("client-1", pins, make)

    assert made == ["one", "two"]
    assert (folder / "content").read_text() == "two"


def test_what_was_made_in_part_is_not_used(tmp_path) -> None:
    pins = tmp_path / "pins"
    pins.write_text("one")

    def stopped(folder: Path, given: Path) -> None:
        (folder / "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        environments.kept("client-1", pins, stopped)
    folder = environments.kept("client-1", pins, lambda folder, given: None)

    assert not (folder / "half").exists()

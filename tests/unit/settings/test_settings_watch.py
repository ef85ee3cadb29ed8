"""How running servers see a changed config.env."""

from __future__ import annotations

import logging

from hermes_digup.settings import Watched, load


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def watched(tmp_path, text: str) -> tuple[Watched, Clock]:
    path = tmp_path / "config.env"
    path.write_text(text)
    environ = {"HOME": str(tmp_path), "DIGUP_CONFIG": str(path)}
    clock = Clock()
    return Watched(load(environ), environ=environ, clock=clock), clock


def test_a_changed_file_is_seen_after_a_second(tmp_path) -> None:
    watch, clock = watched(tmp_path, "DIGUP_EMBED_MODEL=a\n")
    (tmp_path / "config.env").write_text("DIGUP_EMBED_MODEL=longer\n")

    before = watch.current().embed_model
    clock.now = 1.1

    assert (before, watch.current().embed_model) == ("a", "longer")


def test_now_does_not_wait_for_the_second(tmp_path) -> None:
    watch, _ = watched(tmp_path, "DIGUP_EMBED_MODEL=a\n")
    (tmp_path / "config.env").write_text("DIGUP_EMBED_MODEL=longer\n")

    assert watch.current(now=True).embed_model == "longer"


def test_a_faulty_new_file_leaves_the_former_settings_and_is_said_once(tmp_path, caplog) -> None:
    watch, clock = watched(tmp_path, "DIGUP_EMBED_MODEL=a\n")
    (tmp_path / "config.env").write_text("this is no setting\n")

    with caplog.at_level(logging.WARNING):
        clock.now = 1.1
        first = watch.current().embed_model
        clock.now = 2.2
        second = watch.current().embed_model

    assert (first, second) == ("a", "a")
    assert len(caplog.records) == 1

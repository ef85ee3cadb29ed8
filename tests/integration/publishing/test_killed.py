"""Killed at every change to the file system: the old or the new copy, whole, and the next run finishes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.publishing.deliveries import (
    Laptop,
    assert_every_copy_is_what_it_says,
    generations,
    leftovers,
    mark_in_use,
    sample,
)

from hermes_digup.publishing import publish, source_status

MOST_STEPS = 80


@pytest.fixture
def killed() -> Iterator[Callable[[int, Path], int]]:
    program = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("killed_publishing.py"))]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def run(step: int, source: Path) -> int:
            requests.write(f"{step} {source}\n")
            requests.flush()
            return int(answers.readline())

        yield run
        requests.close()


def with_two_copies(folder: Path) -> Laptop:
    """A source with two published copies, so that publishing a third also prunes; a third has arrived."""
    laptop = Laptop(folder)
    for mark in "01":
        laptop.deliver(sample(mark=mark))
        publish(laptop.source)
    laptop.deliver(sample(mark="2"), sample("code"))
    return laptop


def with_a_refused_copy(folder: Path) -> Laptop:
    """A source with one published copy; a bad one has arrived."""
    laptop = Laptop(folder)
    laptop.deliver(sample(mark="1"))
    publish(laptop.source)
    laptop.deliver(b"no database" * 1000)
    return laptop


@pytest.mark.parametrize(
    ("prepared", "at_last"),
    [(with_two_copies, ("published", "2")), (with_a_refused_copy, ("refused", "1"))],
)
def test_a_publisher_killed_at_any_step_leaves_a_whole_copy_in_use(
    prepared: Callable[[Path], Laptop],
    at_last: tuple[str, str],
    killed: Callable[[int, Path], int],
    tmp_path: Path,
) -> None:
    template = prepared(tmp_path / "template" / "macbook")
    deaths, marks = 0, set()
    for step in range(1, MOST_STEPS):
        source = tmp_path / str(step) / "macbook"
        shutil.copytree(template.source, source, symlinks=True)

        end = killed(step, source)

        marks.add(mark_in_use(source))
        publish(source)
        assert (source_status(source).state, mark_in_use(source)) == at_last, f"step {step}"
        assert_every_copy_is_what_it_says(source)
        assert leftovers(source) == [], f"step {step}"
        assert len(generations(source)) <= 2
        shutil.rmtree(source)
        if end == 0:
            break
        assert end == signal.SIGKILL
        deaths += 1

    assert end == 0, "it runs out of steps"
    assert deaths > 3
    assert marks == {"1", at_last[1]}


def test_everything_reaches_the_disk_before_the_name_that_promises_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform != "linux":
        pytest.skip("needs /proc to name descriptors: run it on Linux")
    laptop = with_two_copies(tmp_path / "macbook")
    calls: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def recorded_fsync(descriptor: int) -> None:
        calls.append("fsync " + str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    def recorded_rename(source: Path, to: Path) -> Path:
        calls.append(f"rename {source} {to}")
        return rename(source, to)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "rename", recorded_rename)

    generation = publish(laptop.source).generation

    home = laptop.source / "generations"
    work, made = home / f".new-{generation}", home / f"{generation}"
    sealed = calls.index(f"rename {work} {made}")
    switched = calls.index(f"rename {laptop.source / '.current.new'} {laptop.source / 'current'}")
    for name in (
        "index.sqlite",
        "code.sqlite",
        "index.vectors-3.bin",
        "code.vectors-3.bin",
        ".generation.json.new",
    ):
        assert f"fsync {work / name}" in calls[:sealed]
    assert f"fsync {work}" in calls[:sealed]
    assert f"fsync {home}" in calls[sealed:switched]
    assert calls[switched + 1] == f"fsync {laptop.source}"

"""A disk that is really full, here or at the Pi: one sentence, exit code 5, and the next run finishes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.disks import fill, small_disk
from tests.integration.sync.rig import Laptop, Pi


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 12) as folder:
        yield folder


def refused(laptop: Laptop, sentence: str) -> None:
    done = laptop.run()
    assert done.returncode == 5, done.stderr
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert laptop.status()["message"] == done.stderr.removeprefix("digup-sync: ").strip()
    assert laptop.leftovers() == []


def test_a_full_disk_here(disk: Path, pi: Pi) -> None:
    laptop = Laptop(disk / "mac", pi)
    laptop.fill()
    laptop.change("old", ballast=3_000_000)
    laptop.sync()
    laptop.change("new", ballast=3_000_000)
    ballast = fill(disk, leave=1_000_000)

    refused(laptop, "no room for a snapshot of index.sqlite")

    assert pi.mark == "old"
    ballast.unlink()
    laptop.sync()
    assert pi.mark == "new"


def test_not_a_byte_left_here(disk: Path, pi: Pi) -> None:
    """Then not even the status can be written; the exit code and the sentence say it all the same."""
    laptop = Laptop(disk / "mac", pi)
    laptop.fill("old")
    laptop.sync()
    before = laptop.status()
    laptop.set_mark("new")
    command, environment = laptop.command()
    ballast = fill(disk, leave=0)

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 5, done.stderr
    assert "look at the disk" in done.stderr
    assert laptop.status() == before
    ballast.unlink()
    laptop.sync()
    assert (pi.mark, laptop.leftovers()) == ("new", [])


@pytest.mark.parametrize(
    ("room", "sentence"),
    [(0.5, "no room left on the Pi for the copy"), (1.0, "no room left on the Pi to use the copy")],
    ids=["while it arrives", "while it is published"],
)
def test_a_full_disk_at_the_pi(tmp_path: Path, disk: Path, room: float, sentence: str) -> None:
    """There is room for so much of the copy, and for little else: the packed vectors need 460 kB more."""
    pi = Pi(disk / "pi")
    laptop = Laptop(tmp_path / "mac", pi)
    laptop.fill_large(300)
    laptop.change("old")
    laptop.sync()
    laptop.change("new")
    size = (laptop.folder / "index.sqlite").stat().st_size
    ballast = fill(disk, leave=int(size * room) + 100_000)

    refused(laptop, sentence)

    assert (pi.mark, pi.leftovers()) == ("old", [])
    ballast.unlink()
    laptop.sync()
    assert pi.mark == "new"

"""No room while publishing: the old copy stays, the reason is said, and room is made where it can be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.disks import fill, small_disk
from tests.integration.publishing.deliveries import Laptop, generations, leftovers, mark_in_use, sample

from hermes_digup.publishing import publish, source_status


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 8) as folder:
        yield folder


def test_a_full_disk_keeps_the_old_copy_and_says_so(disk: Path) -> None:
    laptop = Laptop(disk / "macbook")
    laptop.deliver(sample(mark="1"))
    publish(laptop.source)
    laptop.deliver(sample(mark="2"))
    ballast = fill(disk, leave=16_384)

    outcome = publish(laptop.source)

    assert (outcome.state, outcome.exit_code) == ("refused", 5)
    assert "disk is full" in outcome.reason
    assert source_status(laptop.source).reason == outcome.reason
    assert mark_in_use(laptop.source) == "1"
    assert leftovers(laptop.source) == []
    ballast.unlink()
    assert publish(laptop.source).state == "published", "a full disk is no fault of the copy"
    assert mark_in_use(laptop.source) == "2"


def test_a_disk_without_a_single_byte_left_keeps_the_old_copy(disk: Path) -> None:
    laptop = Laptop(disk / "macbook")
    laptop.deliver(sample(mark="1"))
    publish(laptop.source)
    laptop.deliver(sample(mark="2"))
    fill(disk, leave=0)

    outcome = publish(laptop.source)

    assert (outcome.state, outcome.exit_code) == ("refused", 5)
    assert mark_in_use(laptop.source) == "1"
    assert leftovers(laptop.source) == []


def test_a_full_disk_gives_up_the_copy_before_the_one_in_use_and_says_so(disk: Path) -> None:
    laptop = Laptop(disk / "macbook")
    for mark in "12":
        laptop.deliver(sample(mark=mark))
        publish(laptop.source)
    laptop.deliver(sample(mark="3"))
    fill(disk, leave=16_384)

    outcome = publish(laptop.source)

    assert outcome.state == "published"
    assert "the disk was full" in outcome.note
    assert source_status(laptop.source).note == outcome.note
    assert mark_in_use(laptop.source) == "3"


LIMITED = """
import resource, signal, sys
from pathlib import Path
from hermes_digup.publishing import publish
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
outcome = publish(Path(sys.argv[1]))
print(outcome.state, outcome.exit_code, outcome.reason)
"""


def test_a_file_that_the_system_lets_grow_no_further_counts_as_a_full_disk(tmp_path: Path) -> None:
    laptop = Laptop(tmp_path / "macbook")
    laptop.deliver(sample(mark="1"))
    publish(laptop.source)
    laptop.deliver(sample(mark="2"))

    said = subprocess.run(
        [sys.executable, "-c", LIMITED, str(laptop.source)], capture_output=True, text=True, check=True
    ).stdout

    assert said == "refused 5 the disk is full\n"
    assert mark_in_use(laptop.source) == "1"
    assert len(generations(laptop.source)) == 1

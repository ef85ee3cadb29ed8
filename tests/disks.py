"""A file system of a few megabytes that can really be filled."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """Mounted at `folder` while the context is open."""
    folder.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or not mount:
        pytest.skip("mounting a small tmpfs needs root (run the tests as root in a container)")
    command = [mount, "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("this container may not mount a tmpfs (give it CAP_SYS_ADMIN)")
    yield folder
    # A process that is just ending may still be in it.
    deadline = time.monotonic() + 10
    while subprocess.run(["umount", str(folder)], check=False).returncode:
        assert time.monotonic() < deadline, f"{folder} is still in use"
        time.sleep(0.1)


def fill(folder: Path, *, leave: int) -> Path:
    """Takes all room of a file system but `leave` bytes; the file that takes it."""
    ballast = folder / "ballast"
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    ballast.write_bytes(bytes(max(free - leave, 0)))
    return ballast

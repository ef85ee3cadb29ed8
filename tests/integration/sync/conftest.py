"""Fixtures: a laptop and its Pi, joined by the ssh double, or by a real sshd on loopback."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.integration.sync.rig import Laptop, Pi

MISSING = [tool for tool in ("sqlite3", "rsync", "rrsync") if shutil.which(tool) is None]


@pytest.fixture
def pi(tmp_path: Path) -> Pi:
    if MISSING:
        pytest.skip(f"not installed here: {', '.join(MISSING)}")
    return Pi(tmp_path / "pi")


@pytest.fixture
def laptop(tmp_path: Path, pi: Pi) -> Laptop:
    return Laptop(tmp_path / "mac", pi)

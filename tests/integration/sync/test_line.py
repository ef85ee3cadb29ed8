"""Killed, or cut off, all through a run over a real sshd: the copy in use is whole, the next run finishes."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from typing import Literal

import pytest
from tests.integration.sync.rig import Laptop, Pi, descendants, wait_for
from tests.integration.sync.wire import Line
from tests.soak import rounds

VICTIMS = ("rsync", "sshd side", "group")
KILLS = rounds(1, 40)  # of each of them
WAYS: tuple[Literal["reset", "silent"], ...] = ("reset", "silent")
CUTS = rounds(1, 10)  # of each kind

pytestmark = pytest.mark.timeout(7200)


def bytes_of_a_run(laptop: Laptop, line: Line) -> int:
    laptop.fill()
    laptop.change("first")
    laptop.sync()
    laptop.change("measured")
    line.mend()
    laptop.sync()
    return line.sent


def kill(whom: str, run: subprocess.Popen[bytes], pi: Pi) -> list[int]:
    """SIGKILL; returns who got it."""
    if whom == "group":
        os.killpg(run.pid, signal.SIGKILL)
        return [run.pid]
    root, names = (pi.sshd, "") if whom == "sshd side" else (run.pid, "rsync")
    found = [pid for pid, name in descendants(root).items() if not names or name == names]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return found


def whole_after(laptop: Laptop, pi: Pi, former: str, new: str) -> None:
    """What must hold whatever happened: a whole copy, next to nothing left, and the next run finishes."""
    assert pi.mark in (former, new)
    wait_for(pi.is_idle, 60)
    assert len(pi.leftovers()) <= 1, pi.leftovers()
    assert len(laptop.leftovers()) <= 3, laptop.leftovers()
    laptop.sync()
    assert pi.mark == new
    assert (laptop.leftovers(), pi.leftovers()) == ([], [])
    assert len(list((pi.source / "generations").iterdir())) <= 2


def test_killed_at_any_byte_of_a_run(laptop: Laptop, pi: Pi, line: Line) -> None:
    whole, killed, former = bytes_of_a_run(laptop, line), 0, "measured"
    for number, whom in itertools.product(range(1, KILLS + 1), VICTIMS):
        new, hit, runs = f"{whom} {number}", list[int](), list[subprocess.Popen[bytes]]()
        laptop.change(new)
        line.mend()
        line.at(
            whole * number // (KILLS + 1),
            lambda whom=whom, hit=hit, runs=runs: hit.extend(kill(whom, runs[0], pi)),
        )
        runs.append(laptop.start())
        code = runs[0].wait(120)
        expected = 0 if not hit else -signal.SIGKILL if whom == "group" else 75
        assert code == expected, (new, laptop.log.read_text())
        killed += bool(hit)
        whole_after(laptop, pi, former, new)
        former = new
    assert killed > KILLS * len(VICTIMS) // 2


def test_cut_off_in_the_middle_of_a_transfer(laptop: Laptop, pi: Pi, line: Line) -> None:
    """A silent line is noticed by ssh here, in seconds instead of a minute, and by the bound at the Pi."""
    pi.admit((laptop.config / "sync_key.pub").read_text(), bound=8)
    config = laptop.config / "ssh_config"
    config.write_text(
        config.read_text()
        .replace("ServerAliveInterval 15", "ServerAliveInterval 1")
        .replace("ServerAliveCountMax 4", "ServerAliveCountMax 2")
    )
    whole, former = bytes_of_a_run(laptop, line), "measured"
    for number, how in itertools.product(range(1, CUTS + 1), WAYS):
        new = f"{how} {number}"
        laptop.change(new)
        line.mend()
        line.break_at(whole * number // (CUTS + 1), how)
        done = laptop.run(timeout=120)
        assert done.returncode == 75, done.stderr
        assert pi.mark == former
        line.mend()
        whole_after(laptop, pi, former, new)
        former = new

"""Killed, cut off, started twice: the copy in use is whole, the next run finishes, nothing piles up."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.sync.rig import SCRIPT, Laptop, Pi, is_alive, wait_for
from tests.soak import rounds


def test_beside_a_busy_writer_every_copy_is_of_one_moment(laptop: Laptop, pi: Pi) -> None:
    laptop.fill()
    writer = laptop.start_writer()
    try:
        assert writer.stdout and writer.stdout.readline()
        sums = []
        for _ in range(3):
            laptop.sync()
            ((total, kept),) = pi.query(
                "SELECT sum(size), (SELECT value FROM meta WHERE key = 'sum') FROM files"
            )
            assert str(total) == kept
            sums.append(total)
        assert sums == sorted(set(sums))
        assert writer.poll() is None
    finally:
        writer.kill()
        lines = writer.communicate()[0].splitlines()
    with closing(sqlite3.connect(laptop.folder / "index.sqlite")) as database:
        ((kept,),) = database.execute("SELECT count(*) FROM files WHERE path LIKE '/w/%'").fetchall()
    assert kept >= int(lines[-1].split()[0])


def commands_of_a_run(laptop: Laptop, tmp_path: Path) -> int:
    """How many commands bash runs in one delivery, functions included."""
    counter = tmp_path / "counter"
    hook = tmp_path / "count"
    hook.write_text("set -T\nSTEPS=0\ntrap 'STEPS=$((STEPS + 1)); echo $STEPS >\"$KILL_COUNTER\"' DEBUG\n")
    laptop.run("--force", environment={"BASH_ENV": str(hook), "KILL_COUNTER": str(counter)})
    return int(counter.read_text())


@pytest.mark.timeout(7200)
def test_killed_at_any_command_the_copy_in_use_is_whole_and_the_next_run_finishes(
    laptop: Laptop, pi: Pi, tmp_path: Path
) -> None:
    """SIGKILL to the script alone: what it started must end too, or at least do no harm."""
    laptop.fill("0")
    laptop.sync()
    steps = commands_of_a_run(laptop, tmp_path)
    hook = tmp_path / "kill"
    hook.write_text(
        "set -T\nSTEPS=0\ntrap 'STEPS=$((STEPS + 1)); [ $STEPS != $KILL_AT ] || kill -9 $$' DEBUG\n"
    )
    points = rounds(6, 40)
    for number in range(1, points + 1):
        laptop.set_mark(str(number))
        at = steps * number // (points + 1) + number
        done = laptop.run(environment={"BASH_ENV": str(hook), "KILL_AT": str(at)})
        assert done.returncode == -signal.SIGKILL, f"point {at} of {steps} was not reached"
        assert pi.mark in (str(number - 1), str(number))
        assert len(laptop.leftovers()) <= 3, laptop.leftovers()
        laptop.sync()
        assert pi.mark == str(number)
        assert laptop.leftovers() == []
    assert pi.leftovers() == []
    assert len(list((pi.source / "generations").iterdir())) <= 2


@pytest.mark.parametrize("whom", ["group", "script", "transfer"])
def test_killed_in_the_middle_of_a_transfer(laptop: Laptop, pi: Pi, tmp_path: Path, whom: str) -> None:
    laptop.fill("old")
    laptop.sync()
    laptop.set_mark("new")
    record = tmp_path / "pid"
    laptop.settings["DIGUP_RSYNC"] = laptop.program(
        "slow", f'#!/bin/sh\necho $$ >"{record}"\nexec sleep 600\n'
    )
    run = laptop.start()
    wait_for(lambda: record.exists() and record.read_text().strip())
    transfer = int(record.read_text())
    if whom == "group":
        os.killpg(run.pid, signal.SIGKILL)
    elif whom == "script":
        run.kill()
    else:
        os.kill(transfer, signal.SIGKILL)
    code = run.wait(20)
    assert code == (75 if whom == "transfer" else -signal.SIGKILL)
    wait_for(lambda: not is_alive(transfer), 20)
    assert pi.mark == "old"
    del laptop.settings["DIGUP_RSYNC"]
    laptop.sync()
    assert pi.mark == "new"


def test_a_stopped_run_says_so_and_takes_its_children_along(laptop: Laptop, tmp_path: Path) -> None:
    laptop.fill()
    record = tmp_path / "pid"
    laptop.settings["DIGUP_RSYNC"] = laptop.program(
        "slow", f'#!/bin/sh\necho $$ >"{record}"\nexec sleep 600\n'
    )
    run = laptop.start()
    wait_for(lambda: record.exists() and record.read_text().strip())
    run.terminate()
    assert run.wait(20) == 143
    assert laptop.status()["state"] == "stopped"
    assert laptop.leftovers() == []
    wait_for(lambda: not is_alive(int(record.read_text())))


def test_two_runs_never_overlap(laptop: Laptop, tmp_path: Path) -> None:
    laptop.fill()
    record = tmp_path / "pid"
    slow = laptop.program("slow", f'#!/bin/sh\necho $$ >"{record}"\nexec sleep 600\n')
    laptop.settings["DIGUP_RSYNC"] = slow
    first = laptop.start()
    wait_for(record.exists)
    second = laptop.run()
    assert (second.returncode, second.stderr) == (
        6,
        "digup-sync: another run is at work; this one leaves it alone\n",
    )
    assert not (laptop.base / "status.json").exists()
    first.terminate()
    first.wait(20)


@pytest.mark.parametrize(
    "owner",
    ["999999 1", f"{os.getpid()} 1", "garbage", ""],
    ids=["gone", "number reused", "garbage", "empty"],
)
def test_a_stale_lock_is_recognised(laptop: Laptop, owner: str) -> None:
    laptop.fill()
    laptop.base.mkdir(parents=True)
    (laptop.base / "lock").write_text(f"{owner}\n")
    (laptop.base / "lock.999999").write_text("999999 1\n")
    # Somebody was killed while taking over from a dead owner, too.
    (laptop.base / "lock~999999_1").write_text("999998 1\n")
    laptop.sync()
    assert laptop.leftovers() == []


def test_of_many_starters_over_a_dead_lock_one_works_at_a_time(laptop: Laptop, tmp_path: Path) -> None:
    """Each worker that holds the lock says when it enters and leaves; nobody else may be inside."""
    laptop.fill()
    laptop.base.mkdir(parents=True)
    (laptop.base / "lock").write_text("999999 1\n")
    inside = tmp_path / "inside"
    body = re.search(r"^take_lock\(\) \{.*?^clear_staging", SCRIPT.read_text(), re.DOTALL | re.MULTILINE)
    assert body
    starter = tmp_path / "starter.sh"
    starter.write_text(
        'BASE=$1; fail() { exit "$1"; }; say() { :; }\n'
        'process_start() { sed "s/.*) //" "/proc/$1/stat" | cut -d " " -f 20; }\n'
        + body.group().removesuffix("clear_staging")
        + f'take_lock\nmkdir "{inside}" || exit 99\nsleep 0.05\nrmdir "{inside}"\n'
        + 'rm -f "$BASE/lock" "$BASE/lock.$$"\n'
    )
    runs = [subprocess.Popen(["/bin/bash", str(starter), str(laptop.base)]) for _ in range(8)]
    codes = [run.wait(30) for run in runs]
    assert set(codes) <= {0, 6} and 0 in codes


def test_a_clock_that_was_set_back_stops_nothing(laptop: Laptop, pi: Pi, tmp_path: Path) -> None:
    laptop.fill("before")
    laptop.sync()
    laptop.set_mark("after")
    back = tmp_path / "back"
    back.write_text("date() { command date -d '3 days ago' \"$@\"; }\n")
    done = laptop.run(environment={"BASH_ENV": str(back)})
    assert done.returncode == 0, done.stderr
    assert pi.mark == "after"
    laptop.sync()


@pytest.mark.timeout(7200)
def test_many_runs_leave_nothing_behind(laptop: Laptop, pi: Pi) -> None:
    laptop.fill("0")
    laptop.sync()
    here, there = sorted(laptop.home.rglob("*")), None
    for number in range(1, rounds(3, 100) + 1):  # two runs each
        laptop.set_mark(str(number))
        laptop.sync()
        laptop.sync()
        counted = len(list(pi.home.rglob("*")))
        assert there in (None, counted)
        if number > 1:
            there = counted
    assert sorted(laptop.home.rglob("*")) == here

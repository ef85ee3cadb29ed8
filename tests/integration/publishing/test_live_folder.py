"""The folder DigUp writes is followed and copied, and bears no trace of it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.publishing.deliveries import CODE, MAIN, edited, leftovers, mark_in_use, sample

from hermes_digup.errors import NoIndexError, RefusedCopyError
from hermes_digup.publishing import LiveFolder, source_status

WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for line in sys.stdin:
    connection.execute(line)
    print("done", flush=True)
"""


class DigUp:
    """A process that has the index open in log mode, as DigUp does, and writes what it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder / MAIN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, sql: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(sql + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def mark(self, mark: str) -> None:
        self.do(f"UPDATE meta SET value = '{mark}' WHERE key = 'mark'")

    def end(self, *, crash: bool = False) -> None:
        if crash:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index in log mode that nobody has open."""
    folder = tmp_path / "Application Support" / "index.noindex"
    folder.mkdir(parents=True)
    (folder / MAIN).write_bytes(sample())
    with closing(sqlite3.connect(folder / MAIN)) as connection:
        assert connection.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    return folder


@pytest.fixture
def digup(folder: Path) -> Iterator[DigUp]:
    digup = DigUp(folder)
    digup.mark("1")
    yield digup
    digup.end()


@pytest.fixture
def live(folder: Path, tmp_path: Path) -> LiveFolder:
    return LiveFolder(folder, tmp_path / "cache")


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [folder, *sorted(folder.rglob("*"))]
    }


def closed(digup: DigUp) -> None:
    digup.end()


def open_and_idle(digup: DigUp) -> None:
    digup.mark("2")


def checkpointed(digup: DigUp) -> None:
    digup.mark("2")
    digup.do("PRAGMA wal_checkpoint(TRUNCATE)")


def crashed(digup: DigUp) -> None:
    digup.mark("2")
    digup.end(crash=True)


def crashed_without_an_index_of_the_log(digup: DigUp) -> None:
    crashed(digup)
    (digup.folder / f"{MAIN}-shm").unlink()


def in_rollback_mode(digup: DigUp) -> None:
    digup.end()
    (digup.folder / MAIN).write_bytes(sample(mark="2"))


@pytest.mark.parametrize(
    ("before", "mark"),
    [
        (closed, "1"),
        (open_and_idle, "2"),
        (checkpointed, "2"),
        (crashed, "2"),
        (crashed_without_an_index_of_the_log, "2"),
        (in_rollback_mode, "2"),
    ],
)
def test_a_copy_leaves_no_trace_in_the_folder(
    before: Callable[[DigUp], None], mark: str, digup: DigUp, live: LiveFolder
) -> None:
    before(digup)
    found = everything(live.folder)

    outcome = live.refresh()

    assert outcome is not None
    assert outcome.state == "published"
    assert everything(live.folder) == found
    assert mark_in_use(live.source) == mark
    assert leftovers(live.source) == []


def test_a_folder_that_may_only_be_read_is_copied(folder: Path, live: LiveFolder) -> None:
    for path in (folder / MAIN, folder):
        path.chmod(path.stat().st_mode & ~0o222)

    assert live.refresh()
    assert mark_in_use(live.source) == "1"
    folder.chmod(0o700)


def test_what_a_killed_copy_left_is_cleared_and_never_mixed_in(live: LiveFolder) -> None:
    work = live.source / "landing" / ".copy"
    work.mkdir(parents=True)
    for name in (MAIN, f"{MAIN}-journal"):
        (work / name).write_bytes(sample(mark="9"))

    live.refresh()

    assert mark_in_use(live.source) == "1"
    assert leftovers(live.source) == []


def test_nothing_new_is_no_copy_but_a_confirmation(live: LiveFolder) -> None:
    live.refresh()
    generation = source_status(live.source).generation
    (live.source / "landing" / "confirmed.json").unlink()

    assert not live.is_changed()
    assert live.refresh() is None
    assert source_status(live.source).generation == generation
    assert source_status(live.source).confirmed_at is not None


def test_two_changes_within_a_moment_with_equal_size_and_time_are_both_seen(
    digup: DigUp, live: LiveFolder
) -> None:
    digup.do("PRAGMA wal_autocheckpoint=0")
    for number in range(20):
        digup.mark(f"{number:02d}")
    digup.do("PRAGMA wal_checkpoint(FULL)")
    stamp = (live.folder / MAIN).stat().st_mtime_ns
    names = [MAIN, f"{MAIN}-wal", f"{MAIN}-shm"]
    sizes = [(live.folder / name).stat().st_size for name in names]
    for mark in ("aa", "bb", "cc"):
        # A log that starts over is written from its start: neither its size nor its end changes.
        digup.mark(mark)
        for name in names:
            os.utime(live.folder / name, ns=(stamp, stamp))
        assert [(live.folder / name).stat().st_size for name in names] == sizes

        assert live.is_changed()
        assert live.refresh()
        assert mark_in_use(live.source) == mark


def test_two_changes_in_rollback_mode_with_equal_size_and_time_are_both_seen(
    folder: Path, live: LiveFolder
) -> None:
    for mark in ("2", "3"):
        (folder / MAIN).write_bytes(edited(sample(), f"UPDATE meta SET value='{mark}' WHERE key='mark'"))
        os.utime(folder / MAIN, (1, 1))
        data = (folder / MAIN).read_bytes()
        (folder / MAIN).write_bytes(data[:24] + mark.encode() * 4 + data[28:])
        os.utime(folder / MAIN, (1, 1))

        assert live.refresh()
        assert mark_in_use(live.source) == mark


def test_a_copy_taken_while_digup_writes_shows_one_moment(digup: DigUp, live: LiveFolder) -> None:
    digup.do("CREATE TABLE pair (a, b)")
    digup.do("INSERT INTO pair VALUES (0, 0)")
    stop = threading.Event()
    written = []

    def write() -> None:
        while not stop.is_set():
            written.append(len(written))
            digup.do(f"UPDATE pair SET a = {len(written)}, b = {len(written)}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            before = len(written)
            until(lambda: len(written) >= before + 2)  # noqa: B023 - so that at least one write is through
            seen = len(written)
            assert live.refresh()
            with closing(sqlite3.connect(live.source / "current" / MAIN)) as connection:
                a, b = connection.execute("SELECT a, b FROM pair").fetchone()
            assert a == b
            assert a >= seen - 1
    finally:
        stop.set()
        writer.join()
    assert len(written) > 10


def test_code_search_that_is_turned_off_leaves_the_copy(folder: Path, live: LiveFolder) -> None:
    (folder / CODE).write_bytes(sample("code"))
    live.refresh()
    with_code = (live.source / "current" / CODE).exists()
    (folder / CODE).unlink()

    live.refresh()

    assert with_code
    assert not (live.source / "current" / CODE).exists()
    assert not (live.source / "landing" / CODE).exists()


def test_a_folder_without_an_index_is_named_and_nothing_is_made(tmp_path: Path) -> None:
    live = LiveFolder(tmp_path / "empty", tmp_path / "cache")

    with pytest.raises(NoIndexError, match=r"index\.sqlite"):
        live.refresh()

    assert not (tmp_path / "cache").exists()


def test_a_file_that_is_no_database_keeps_the_last_copy_and_is_a_problem(
    folder: Path, live: LiveFolder
) -> None:
    live.refresh()
    (folder / MAIN).write_bytes(b"no database" * 1000)

    with pytest.raises(RefusedCopyError, match=r"index\.sqlite cannot be copied"):
        live.refresh()

    assert live.problem
    assert mark_in_use(live.source) == "1"
    (folder / MAIN).write_bytes(sample(mark="2"))
    live.refresh()
    assert live.problem is None


def test_an_index_that_is_refused_is_not_copied_again_and_again(folder: Path, live: LiveFolder) -> None:
    (folder / MAIN).write_bytes(edited(sample(), "PRAGMA user_version=3"))

    outcome = live.refresh()

    assert outcome is not None
    assert outcome.state == "refused"
    assert live.refresh() is None
    assert source_status(live.source).reason == outcome.reason


def until(is_so: Callable[[], bool], within_s: float = 60) -> None:
    give_up = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < give_up, "it did not come to that in time"
        time.sleep(0.05)


def test_a_running_server_follows_the_folder_in_a_process_of_its_own(
    digup: DigUp, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    live = LiveFolder(digup.folder, tmp_path / "cache", look_every_s=0.1, copy_every_s=0.2)
    live.start()
    try:
        until(lambda: mark_in_use(live.source) == "1")
        digup.mark("2")
        until(lambda: mark_in_use(live.source) == "2")
    finally:
        live.close()

    assert capfd.readouterr().out == ""
    assert threading.active_count() == 1 or not any(
        thread.name == "live-folder" for thread in threading.enumerate()
    )


def test_closing_does_not_wait_for_a_copy(digup: DigUp, tmp_path: Path) -> None:
    live = LiveFolder(digup.folder, tmp_path / "cache", look_every_s=0.05, copy_every_s=0.05)
    live.start()
    until(lambda: (live.source / "landing").exists())
    began = time.monotonic()

    live.close()

    assert time.monotonic() - began < 2


def test_several_servers_make_one_copy(digup: DigUp, tmp_path: Path) -> None:
    followers = [LiveFolder(digup.folder, tmp_path / "cache") for _ in range(3)]
    outcomes = []
    threads = [
        threading.Thread(target=lambda live=live: outcomes.append(live.refresh())) for live in followers
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [outcome.state for outcome in outcomes if outcome] == ["published"]

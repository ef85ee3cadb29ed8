"""A changed file travels to the Pi: what is delivered, and when nothing is."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import pytest
from tests.doubles.digup import Index
from tests.doubles.digup_contents import Sample
from tests.integration.sync.rig import Laptop, Pi, sent, start_of


def test_what_digup_holds_is_in_use_at_the_pi(laptop: Laptop, pi: Pi) -> None:
    laptop.fill("first")
    status = laptop.sync()
    assert (status["state"], status["exit_code"], status["source"]) == ("delivered", 0, "macbook")
    assert status["generation"] == (pi.source / "current").readlink().name
    assert pi.mark == "first"
    manifest = json.loads((pi.landing / "manifest.json").read_text())
    assert (manifest["format"], manifest["source"], manifest["schema"]) == (1, "macbook", 5)
    assert manifest["home"] == str(laptop.home)
    assert list(manifest["files"]) == ["index.sqlite"]
    assert laptop.leftovers() == pi.leftovers() == []


def test_what_stands_in_the_log_alone_is_delivered(laptop: Laptop, pi: Pi) -> None:
    laptop.fill("closed")
    with closing(laptop.index()) as digup:
        digup.database("index.sqlite").execute("UPDATE meta SET value = 'in the log' WHERE key = 'mark'")
        laptop.sync()
        assert pi.mark == "in the log"


def test_without_a_change_only_the_time_of_the_look_is_sent(laptop: Laptop, pi: Pi, tmp_path: Path) -> None:
    laptop.fill()
    laptop.sync()
    delivered = (pi.landing / "manifest.json").read_bytes()
    calls = tmp_path / "calls"
    laptop.recording_rsync(calls)
    status = laptop.sync()
    assert status["state"] == "unchanged"
    assert [line.split()[-2:] for line in calls.read_text().splitlines()] == [
        ["confirmed.json", "hermes-digup-agent:./"]
    ]
    assert (pi.landing / "manifest.json").read_bytes() == delivered
    assert json.loads((pi.landing / "confirmed.json").read_text())["confirmed_at"] == status["confirmed_at"]


def test_no_more_crosses_the_wire_than_what_has_changed(laptop: Laptop, tmp_path: Path) -> None:
    """By row not more than of an index ten times as large: 3 MB for 200 rows (tests/bench/sync.py)."""
    laptop.fill_large(3000)
    laptop.sync()
    size = (laptop.folder / "index.sqlite").stat().st_size
    record = laptop.counting_rsync()
    laptop.change_rows(50)
    assert laptop.sync()["state"] == "delivered"
    data, every = sent(record)
    assert 50 * 1536 < data < 50 * 15_000 < every * 10 < size

    calls, hook = tmp_path / "sqlite-calls", tmp_path / "hook"
    hook.write_text(f'sqlite3() {{ printf "%s\\n" "$*" >>"{calls}"; command sqlite3 "$@"; }}\n')
    assert laptop.run(environment={"BASH_ENV": str(hook)}).returncode == 0
    assert laptop.status()["state"] == "unchanged"
    assert sent(record)[1] < 4096
    assert ".backup" not in calls.read_text()
    assert laptop.run("--force", environment={"BASH_ENV": str(hook)}).returncode == 0
    assert ".backup" in calls.read_text()


def test_force_sends_what_has_not_changed(laptop: Laptop, pi: Pi, tmp_path: Path) -> None:
    laptop.fill()
    laptop.sync()
    calls = tmp_path / "calls"
    laptop.recording_rsync(calls)
    assert (
        laptop.sync("--force")["message"]
        == f"the Pi had this copy already (generation {laptop.status()['generation']})"
    )
    assert "index.sqlite" in calls.read_text()


@pytest.mark.parametrize("commits", [1, 5])
def test_every_commit_of_a_running_digup_is_noticed(laptop: Laptop, pi: Pi, commits: int) -> None:
    """After a log was started over, commits touch neither its length nor its header nor its end."""
    laptop.fill()
    with closing(laptop.index()) as digup:
        database = digup.database("index.sqlite")
        database.execute("PRAGMA wal_autocheckpoint = 0")
        for number in range(200):
            digup.add(Sample(f"Documents/{number}.md", "doc", (f"Text {number}.",)))
        database.execute("PRAGMA wal_checkpoint(RESTART)")
        database.execute("UPDATE meta SET value = 'restarted' WHERE key = 'mark'")
        laptop.sync()
        for number in range(commits):
            database.execute("UPDATE meta SET value = ? WHERE key = 'mark'", (str(number),))
        assert laptop.sync()["state"] == "delivered"
        assert pi.mark == str(commits - 1)


def test_a_change_that_keeps_size_and_time_is_delivered(laptop: Laptop, pi: Pi) -> None:
    laptop.fill("aaaa")
    laptop.sync()
    path = laptop.folder / "index.sqlite"
    before = path.stat()
    laptop.set_mark("bbbb")
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(pi.landing / "index.sqlite", ns=(before.st_atime_ns, before.st_mtime_ns))
    laptop.sync()
    assert pi.mark == "bbbb"


def test_turning_code_search_off_removes_the_code_index_at_the_pi(laptop: Laptop, pi: Pi) -> None:
    laptop.fill()
    laptop.set_mark("code", "code.sqlite")
    laptop.sync()
    assert pi.query("SELECT value FROM meta WHERE key = 'mark'", "code.sqlite") == [("code",)]
    (laptop.folder / "code.sqlite").unlink()
    assert laptop.sync()["state"] == "delivered"
    assert not (pi.source / "current" / "code.sqlite").exists()
    assert pi.mark == "1"


def test_the_code_index_stays_here_when_it_is_not_wanted(laptop: Laptop, pi: Pi) -> None:
    laptop.fill()
    laptop.set_mark("code", "code.sqlite")
    laptop.settings["DIGUP_SYNC_CODE"] = "0"
    laptop.sync()
    assert not (pi.landing / "code.sqlite").exists()


def test_a_pi_that_was_set_up_anew_gets_everything_again(laptop: Laptop, pi: Pi) -> None:
    laptop.fill()
    laptop.sync()
    (pi.source / "current").unlink()
    for path in pi.landing.iterdir():
        path.unlink()
    laptop.sync()
    assert pi.mark == "1"


def test_digups_folder_is_left_as_it_was(laptop: Laptop) -> None:
    laptop.fill()
    before = {path.name: path.stat().st_mtime_ns for path in laptop.folder.iterdir()}
    laptop.sync()
    assert {path.name: path.stat().st_mtime_ns for path in laptop.folder.iterdir()} == before


def test_a_dry_run_tells_and_does_nothing(laptop: Laptop, pi: Pi) -> None:
    laptop.fill()
    done = laptop.run("--dry-run")
    assert done.returncode == 0
    assert "a snapshot of index.sqlite would be taken and sent" in done.stdout
    assert not laptop.base.exists() and not laptop.log.exists()
    assert pi.mark is None


def test_the_log_has_a_line_per_run_and_stays_small(laptop: Laptop) -> None:
    laptop.fill()
    laptop.sync()
    laptop.sync()
    assert len(laptop.log.read_text().splitlines()) == 2
    laptop.log.write_text("x" * 300_000)
    laptop.sync()
    assert len(laptop.log.read_text()) < 1000
    assert laptop.log.with_name("hermes-digup-sync.log.1").stat().st_size == 300_000


def test_the_status_is_readable_and_ends_with_the_code_of_the_last_run(laptop: Laptop) -> None:
    done = laptop.run("--status")
    assert (done.returncode, done.stdout) == (1, "No sync has ended here yet.\n")
    laptop.run()
    done = laptop.run("--status")
    assert done.returncode == 3
    assert done.stdout.startswith("Last sync: no_index (3): waiting for DigUp: there is no index.sqlite in ")
    laptop.fill()
    status = laptop.sync()
    done = laptop.run("--status")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"Last sync: delivered (0): {status['message']}",
        f"  ended          {status['finished_at']}, after {status['seconds']} s",
        f"  copy in use of {status['delivered_at']}",
        f"  last confirmed {status['confirmed_at']}",
        f"  index          {laptop.folder}",
        f"  log            {laptop.log}",
    ]
    (laptop.base / "lock").write_text(f"{os.getpid()} {start_of(os.getpid())}\n")
    assert laptop.run("--status").stdout.startswith("A sync is at work now.\nLast sync: delivered (0)")
    (laptop.base / "lock").write_text(f"{os.getpid()} 1\n")
    assert laptop.run("--status").stdout.startswith("Last sync: delivered (0)")


@pytest.mark.parametrize("name", ["my 'home'", 'say "hi"', "jürgen 🍞", "-a:b 50%", "a\\b~"])
def test_any_name_of_a_home_folder_works(tmp_path: Path, pi: Pi, name: str) -> None:
    laptop = Laptop(tmp_path / name, pi)
    laptop.fill("odd")
    laptop.sync()
    assert pi.mark == "odd"
    assert json.loads((pi.landing / "manifest.json").read_text())["home"] == str(laptop.home)


def test_bytes_that_are_no_utf8_do_not_break_the_manifest(tmp_path: Path, pi: Pi) -> None:
    home = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9\n\x01\xed\xa0\x80\xf0\x9f\x8d"))
    laptop = Laptop(home, pi)
    with closing(Index(laptop.folder, home="/Users/ada")) as index:  # SQLite's own text is UTF-8
        index.add(Sample("Documents/a.md", "doc", ("Bread and butter.",)))
    laptop.set_mark("bytes")
    assert laptop.run().returncode == 0
    assert pi.mark == "bytes"
    written = json.loads((pi.landing / "manifest.json").read_text())["home"]
    assert written.startswith(f"{tmp_path}/caf�\n\x01�") and written.endswith("�")

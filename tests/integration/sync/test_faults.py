"""What may be wrong on either side: one sentence, the documented exit code, and the copy in use stays."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.sync.rig import SCRIPT, Laptop, Pi


def refused(laptop: Laptop, code: int, sentence: str, **more: object) -> None:
    done = laptop.run(**more)  # type: ignore[arg-type]  # passed on as they are
    assert done.returncode == code, (done.returncode, done.stderr)
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    status = laptop.status()
    assert (status["exit_code"], status["message"]) == (
        code,
        done.stderr.removeprefix("digup-sync: ").strip(),
    )
    assert f"({code})" in laptop.log.read_text().splitlines()[-1]
    assert laptop.leftovers() == []


def test_a_missing_index_is_waited_for(laptop: Laptop) -> None:
    refused(laptop, 3, "waiting for DigUp: there is no index.sqlite in")


def test_an_empty_file_is_no_index(laptop: Laptop) -> None:
    laptop.folder.mkdir(parents=True)
    (laptop.folder / "index.sqlite").touch()
    refused(laptop, 3, "is empty")


def test_something_else_in_the_place_of_the_index(laptop: Laptop) -> None:
    (laptop.folder / "index.sqlite").mkdir(parents=True)
    refused(laptop, 3, "is not a file")


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\x7f" * 4096])
def test_a_file_that_is_no_database(laptop: Laptop, content: bytes) -> None:
    laptop.folder.mkdir(parents=True)
    (laptop.folder / "index.sqlite").write_bytes(content)
    refused(laptop, 3, "is not DigUp's index")


def test_a_database_of_another_program(laptop: Laptop) -> None:
    laptop.folder.mkdir(parents=True)
    with closing(sqlite3.connect(laptop.folder / "index.sqlite")) as database:
        database.execute("CREATE TABLE bookmarks(url)")
    refused(laptop, 3, "no such table: files")


def test_a_database_without_a_schema_number(laptop: Laptop) -> None:
    laptop.fill()
    with closing(sqlite3.connect(laptop.folder / "index.sqlite")) as database:
        database.execute("PRAGMA user_version = 0")
    refused(laptop, 3, "but not DigUp's (schema 0)")


def test_a_damaged_index_is_not_sent(laptop: Laptop, pi: Pi) -> None:
    laptop.fill("good")
    laptop.sync()
    path = laptop.folder / "index.sqlite"
    with closing(sqlite3.connect(path)) as database:
        root, size = database.execute(
            "SELECT (SELECT rootpage FROM sqlite_schema WHERE name = 'files_state'), page_size"
            " FROM pragma_page_size"
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size + size // 2)
        file.write(os.urandom(size // 2))
    done = laptop.run()
    assert done.returncode == 3, done.stderr
    assert "open DigUp, it may repair its index" in done.stderr
    assert pi.mark == "good"


def test_an_index_that_another_program_has_locked(laptop: Laptop) -> None:
    laptop.fill()
    with closing(sqlite3.connect(laptop.folder / "index.sqlite")) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        refused(laptop, 6, "is locked by another program")


def test_files_that_macos_withholds(laptop: Laptop, tmp_path: Path) -> None:
    """Permission bits stop no root, so `head` refuses as it does when macOS denies access."""
    laptop.fill()
    denied = tmp_path / "denied"
    denied.write_text('head() { echo "head: Operation not permitted" >&2; return 1; }\n')
    refused(laptop, 3, "System Settings > Privacy & Security", environment={"BASH_ENV": str(denied)})


def test_no_room_for_a_snapshot(laptop: Laptop, pi: Pi) -> None:
    laptop.fill("old")
    laptop.sync()
    laptop.set_mark("new")
    limit = (laptop.folder / "index.sqlite").stat().st_size // 2

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = laptop.run(preexec_fn=small_disk, restore_signals=False)
    assert (done.returncode, "no room for a snapshot" in done.stderr) == (5, True), done.stderr
    assert laptop.leftovers() == [] and pi.mark == "old"
    laptop.sync()
    assert pi.mark == "new"


def test_no_room_on_the_pi(laptop: Laptop, pi: Pi) -> None:
    laptop.fill()
    laptop.settings["DIGUP_RSYNC"] = laptop.program(
        "full", '#!/bin/sh\necho "rsync: write failed: No space left on device (28)" >&2\nexit 11\n'
    )
    refused(laptop, 5, "no room left on the Pi")


def test_a_missing_landing_is_made_again(laptop: Laptop, pi: Pi) -> None:
    laptop.fill("1")
    shutil.rmtree(pi.source)
    laptop.sync()
    assert pi.mark == "1"


def test_something_else_in_the_place_of_the_landing(laptop: Laptop, pi: Pi) -> None:
    laptop.fill()
    pi.landing.rmdir()
    pi.landing.touch()
    refused(laptop, 4, 'the Pi could not do "status": receive: the folder of macbook cannot be made here')


SSH_FAULTS = {
    "away": (75, "cannot be reached", "ssh: connect to host pi port 22: Operation timed out", 255),
    "no route": (75, "Local Network access", "ssh: connect to host pi port 22: No route to host", 255),
    "cut off": (75, "cannot be reached", "", 255),
    "other host key": (77, "another host key than the pinned one", "Host key verification failed.", 255),
    "key refused": (77, "refuses this laptop's sync key", "pi@pi: Permission denied (publickey).", 255),
    "a shell": (77, "is not hermes-digup's", "Welcome to Debian", 0),
    "tailscale": (
        77,
        "tailscale set --ssh=false",
        "# Tailscale SSH requires an additional check.\n# visit: https://login.tailscale.com/a/1",
        255,
    ),
    "receive's refusal": (
        4,
        "receive: hermes-digup is not installed here",
        "receive: hermes-digup is not installed here",
        69,
    ),
}


@pytest.mark.parametrize("fault", SSH_FAULTS)
def test_a_pi_that_does_not_answer_as_it_should(laptop: Laptop, fault: str) -> None:
    code, sentence, said, status = SSH_FAULTS[fault]
    laptop.fill()
    laptop.settings["DIGUP_SSH"] = laptop.program(
        "ssh", f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit {status}\n"
    )
    refused(laptop, code, sentence)


def test_a_login_page_that_waits_is_given_up(laptop: Laptop) -> None:
    laptop.fill()
    laptop.settings["DIGUP_SSH"] = laptop.program(
        "ssh", "#!/bin/sh\necho '# Tailscale SSH: visit https://login.tailscale.com/a/1'\nexec sleep 600\n"
    )
    hurry = laptop.home / "hurry"
    hurry.write_text("sleep() { command sleep 0.02; }\n")  # the script counts its waits in sleeps of a second
    refused(laptop, 77, "tailscale set --ssh=false", environment={"BASH_ENV": str(hurry)})


def test_a_copy_that_the_pi_refuses(laptop: Laptop, pi: Pi) -> None:
    laptop.fill("good")
    laptop.sync()
    laptop.set_mark("bad")
    answer = '{"state": "refused", "generation": "0", "reason": "schema 4 is too old"}'
    program = pi.data / "venv" / "bin" / "hermes-digup"
    real = program.read_text()
    program.write_text(f"#!/bin/sh\necho '{answer}'\nexit 4\n")
    refused(laptop, 4, "the Pi refused the copy: schema 4 is too old")
    program.write_text(real)
    laptop.sync()
    assert pi.mark == "bad"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("DIGUP_SORCE=macbook", 'no setting of this script: "DIGUP_SORCE"'),
        ("DIGUP_SOURCE=", "DIGUP_SOURCE is not set"),
        ("DIGUP_SYNC_CODE=perhaps", "must be 0 or 1"),
        ("DIGUP_SSH=ssh", "must be an absolute path"),
        ("DIGUP_RSYNC=/nowhere/rsync", "is not there or cannot be run"),
        ("DIGUP_INDEX_DIR=somewhere", "must be an absolute path"),
    ],
)
def test_settings_that_cannot_be_meant(laptop: Laptop, line: str, sentence: str) -> None:
    key, _, value = line.partition("=")
    laptop.settings[key] = value
    refused(laptop, 2, sentence)


def test_settings_are_data_and_never_run(laptop: Laptop, pi: Pi, tmp_path: Path) -> None:
    laptop.fill()
    laptop.settings["DIGUP_LOG_LEVEL"] = (
        f"$(touch {tmp_path}/run)`touch {tmp_path}/run`; touch {tmp_path}/run"
    )
    laptop.sync()
    assert not (tmp_path / "run").exists()


def test_unknown_options_are_named(laptop: Laptop) -> None:
    done = laptop.run("--forse")
    assert (done.returncode, done.stderr) == (2, 'digup-sync: there is no option "--forse"; see --help\n')


def test_help_documents_every_exit_code_that_is_used(laptop: Laptop) -> None:
    shown = laptop.run("--help").stdout
    used = {word.split()[1] for word in SCRIPT.read_text().split("\n") if word.strip().startswith("fail ")}
    assert shown.startswith("Usage: digup-sync.sh")
    assert {code for code in used if code.isdigit()} <= {
        line.split()[0] for line in shown.splitlines() if line.strip()
    }

"""Each fault of a Pi has one row that names it and one line that mends it; what depends on it is skipped."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.doubles.delivery import SOURCES, deliver

from hermes_digup.cli import main
from hermes_digup.doctor.deliveries import room_row
from hermes_digup.service import Opened
from hermes_digup.settings import load

SYNC = "Wake the laptop, then: ansible-playbook playbooks/sync_now.yml"


class Pi(NamedTuple):
    """A Pi's home folder with a healthy source, and copies of the databases that may be spoilt."""

    home: Path
    databases: list[Path]

    @property
    def source(self) -> Path:
        return self.home / SOURCES / "macbook"

    @property
    def config(self) -> Path:
        return self.home / ".config" / "hermes-digup" / "config.env"

    def deliver(self, *, hours_ago: float = 0) -> str:
        confirmed = datetime.now(timezone.utc) - timedelta(hours=hours_ago)
        return deliver(self.home, "macbook", self.databases, confirmed=confirmed).state

    def change(self, sql: str) -> None:
        with closing(sqlite3.connect(self.databases[0])) as database, database:
            database.execute(sql)


@pytest.fixture
def site(databases: list[Path], tmp_path: Path, monkeypatch) -> Pi:
    home = tmp_path / "a pi"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    site = Pi(home, [Path(shutil.copy(databases[0], tmp_path))])
    assert site.deliver() == "published"
    return site


def stale(pi: Pi) -> None:
    pi.deliver(hours_ago=30)


def first_pass_not_done(pi: Pi) -> None:
    pi.change("UPDATE files SET state = 'pending' WHERE id % 3 = 0")
    pi.deliver()


def newer_schema(pi: Pi) -> None:
    pi.change("PRAGMA user_version = 6")
    pi.deliver()


def older_schema(pi: Pi) -> None:
    pi.change("PRAGMA user_version = 3")
    pi.deliver()


def refused(pi: Pi) -> None:
    pi.databases[0].write_bytes(b"no database")
    pi.deliver()


def incomplete(pi: Pi) -> None:
    pi.change("PRAGMA user_version = 5")
    pi.deliver()
    landed = pi.source / "landing" / "index.sqlite"
    landed.unlink()  # it is a generation's file as well
    landed.write_bytes(b"half")
    main(["publish", "--json"])


def incomplete_for_two_days(pi: Pi) -> None:
    incomplete(pi)
    state = json.loads((pi.source / "state.json").read_text())
    state["since"] = (datetime.now(timezone.utc) - timedelta(hours=49)).isoformat()
    (pi.source / "state.json").write_text(json.dumps(state))


def current_missing(pi: Pi) -> None:
    (pi.source / "current").unlink()


def readable_config(pi: Pi) -> None:
    pi.config.parent.mkdir(parents=True)
    pi.config.write_text("DIGUP_HTTP_TOKEN=tk-planted\n")
    pi.config.chmod(0o644)


def nothing_delivered(pi: Pi) -> None:
    shutil.rmtree(pi.source)
    (pi.source / "landing").mkdir(parents=True)


def no_sources(pi: Pi) -> None:
    shutil.rmtree(pi.source.parent)


def rows(capsys) -> list[dict[str, Any]]:
    capsys.readouterr()
    main(["doctor", "--json"])
    return json.loads(capsys.readouterr().out)["checks"]


def row(capsys, check: str) -> dict[str, Any]:
    return next(each for each in rows(capsys) if each["check"] == check)


@pytest.mark.parametrize(
    ("fault", "check", "state", "detail", "fix"),
    [
        (stale, "last synced, macbook", "warn", "1 day ago; the laptop may be", SYNC),
        (
            first_pass_not_done,
            "index of macbook",
            "warn",
            "DigUp has still 18 of 52",
            "Keep DigUp open on the",
        ),
        (
            newer_schema,
            "index of macbook",
            "warn",
            "schema 6: newer than 5",
            "Update hermes-digup: git pull,",
        ),
        (
            older_schema,
            "delivery of macbook",
            "FAIL",
            "has DigUp's schema 3",
            "Update DigUp on the laptop and",
        ),
        (refused, "delivery of macbook", "FAIL", "refused since 2", SYNC),
        (incomplete, "delivery of macbook", "warn", "incomplete for less than a minute: index.sqlite", SYNC),
        (incomplete_for_two_days, "delivery of macbook", "FAIL", "incomplete for 2 days: index.sqlite", SYNC),
        (
            current_missing,
            "delivery of macbook",
            "FAIL",
            "no copy is in use",
            "hermes-digup publish --source",
        ),
        (readable_config, "settings", "FAIL", "can be read by other users", "chmod 600 '"),
        (nothing_delivered, "delivery of macbook", "warn", "nothing was delivered yet", SYNC),
        (no_sources, "index", "FAIL", "There is no folder /", "ansible-playbook site.yml"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_each_fault_is_named_once_with_its_fix(  # noqa: PLR0913 - one row of the table
    site: Pi, capsys, fault: Callable[[Pi], None], check: str, state: str, detail: str, fix: str
) -> None:
    fault(site)

    told = [
        each for each in rows(capsys) if each["state"] in ("warn", "FAIL") and each["check"] != "model server"
    ]

    assert [each["check"] for each in told if each["state"] == state] == [check]
    assert detail in told[0]["detail"]
    assert told[0]["fix"].startswith(fix)
    assert "\n" not in told[0]["fix"]
    assert "hermes-digup doctor" not in str(told)


@pytest.mark.parametrize("fault", [current_missing, readable_config])
def test_a_fix_for_this_host_mends_it_when_it_is_followed_to_the_letter(site: Pi, capsys, fault) -> None:
    fault(site)
    check = {current_missing: "delivery of macbook", readable_config: "settings"}[fault]

    ours = str(Path(sys.executable).parent)
    path = {"PATH": f"{ours}:{os.environ['PATH']}", "HOME": str(site.home)}
    subprocess.run(["bash", "-c", row(capsys, check)["fix"]], env=path, check=True)

    assert row(capsys, check)["state"] == "ok"


def test_what_hangs_on_a_delivery_without_a_copy_is_skipped(site: Pi, capsys) -> None:
    current_missing(site)

    assert row(capsys, "index of macbook")["state"] == "skip"


def test_a_disk_without_room_for_the_next_copy_says_how_much_to_free(site: Pi) -> None:
    settings = load({"HOME": str(site.home)})
    opened = Opened(timedelta(hours=24), settings.sources_dir)

    row = room_row(settings, opened, free_bytes=50_000_000)

    assert (row.state, row.fix) == ("warn", "Free 150.0 MB on this host.")
    assert room_row(settings, opened).state == "ok"

"""doctor.yml against one fault after another: the right rows complain, and what they say mends it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.doubles import digup
from tests.doubles.model import HashedWords
from tests.doubles.omlx import OmlxDouble
from tests.faults import Fault, Row, names, suffer
from tests.integration.playbooks.conftest import Site
from tests.soak import SOAK, rounds

pytestmark = pytest.mark.timeout(rounds(900, 7200))
LATE = "path: Documents/Late.txt\nkind: doc\nmodified: 2026-03-01T09:00:00\n---\nLate."
TAILSCALE = "Tailscale SSH requires an additional check: https://login.tailscale.com/a/1"


class AnotherModel(HashedWords):
    """Vectors of the right size in another space."""

    def embed(self, prompted: Sequence[str]) -> NDArray[np.float32]:
        return np.roll(super().embed(prompted), 1, axis=1)


class Rig:
    """The deployed site, and what somebody may do to it."""

    def __init__(self, site: Site, omlx: OmlxDouble, report: Path) -> None:
        self.site, self.omlx, self._report = site, omlx, report
        self.source = site.agent / ".local" / "share" / "hermes-digup" / "sources" / "macbook"
        self.config = site.agent / ".config" / "hermes-digup" / "config.env"
        self.environment = site.agent / ".local" / "share" / "hermes-digup" / "venv"
        self.sync_settings = site.laptop / ".config" / "hermes-digup" / "sync.env"
        self.status = site.laptop / "Library" / "Application Support" / "hermes-digup" / "status.json"

    def doctor(self) -> dict[str, Row]:
        ran = self.site.run("playbooks/doctor.yml", doctor_report_path=str(self._report))
        assert set(ran.changed.values()) == {0}, ran.text
        rows = json.loads(self._report.read_text())["rows"]
        return {f"{row['host']}: {row['check']}": Row(*(row[name] for name in Row._fields)) for row in rows}

    def type(self, command: str) -> None:
        _program, playbook, *options = shlex.split(command)
        ran = self.site.run(playbook, *options)
        assert ran.code == 0, ran.text

    def launchctl(self, verb: str) -> None:
        target = f"gui/{os.getuid()}/com.hermes-digup.sync"
        subprocess.run([self.site.launchctl, verb, target], check=True)

    def set(self, line: str) -> None:
        """A setting of the sync, changed by hand; then one sync with it."""
        name = line.partition("=")[0]
        settings = re.sub(rf"(?m)^{name}=.*", line, self.sync_settings.read_text())
        self.sync_settings.write_text(settings)
        self.site.sync()

    def schema(self, number: int) -> None:
        """DigUp was updated, or is an old one; then one sync."""
        with closing(digup.Index(self.site.index, home=str(self.site.laptop))) as index:
            index.database("index.sqlite").execute(f"PRAGMA user_version = {number}")
        self.site.sync()

    def publish(self) -> None:
        command = self.site.agent / ".local" / "bin" / "hermes-digup"
        environ = {"HOME": str(self.site.agent), "PATH": "/usr/bin:/bin"}
        subprocess.run([command, "publish"], env=environ, capture_output=True, check=False)


def hide_the_index(rig: Rig) -> None:
    rig.site.index.rename(rig.site.index.with_name("hidden"))
    rig.site.sync()


def show_the_index(rig: Rig) -> None:
    rig.site.index.with_name("hidden").rename(rig.site.index)


def damage_the_index(rig: Rig) -> None:
    shutil.copytree(rig.site.index, rig.site.index.with_name("hidden"))
    (rig.site.index / "index.sqlite").write_bytes(b"not a database " * 999)
    rig.site.sync()


def repair_the_index(rig: Rig) -> None:
    shutil.rmtree(rig.site.index)
    show_the_index(rig)


def confirm_long_ago(rig: Rig) -> None:
    told = json.loads(rig.status.read_text()) | {"confirmed_at": "2026-01-01T00:00:00Z"}
    rig.status.write_text(json.dumps(told, separators=(",", ":")))


def check_as_tailscale(rig: Rig) -> None:
    ssh = rig.site.root / "tailscale-ssh"
    ssh.write_text(f"#!/bin/sh\necho '{TAILSCALE}' >&2\nexit 255\n")
    ssh.chmod(0o755)
    rig.set(f'DIGUP_SSH="{ssh}"')


def answer_as_sshd(rig: Rig) -> None:
    rig.set(f'DIGUP_SSH="{rig.site.root / "tests" / "doubles" / "ssh_to_receive"}"')


def break_off_a_delivery(rig: Rig) -> None:
    landed = rig.source / "landing" / "index.sqlite"
    arriving = landed.with_name("arriving")
    arriving.write_bytes(landed.read_bytes() + bytes(4096))
    arriving.replace(landed)
    rig.publish()
    with digup.Index(rig.site.index, home=str(rig.site.laptop), model=HashedWords()) as index:
        index.add(
            digup.read_sample(
                "path: Documents/Late.txt\nkind: doc\nmodified: 2026-03-01T09:00:00\n---\nLate."
            )
        )


def pinned(rig: Rig, pinned: bool) -> None:
    for saved in rig.omlx.state.model_settings.values():
        saved["is_pinned"] = pinned


DISABLED = Fault(
    "agent disabled",
    lambda rig: rig.launchctl("disable"),
    {"macbook: launch agent": "FAIL"},
    "switched off in System Settings",
)
NOT_LOADED = Fault(
    "agent not loaded",
    lambda rig: rig.launchctl("bootout"),
    {"macbook: launch agent": "WARN"},
    "not loaded",
)
LAST_RUN_FAILED = Fault(
    "last run failed",
    lambda rig: rig.set("DIGUP_SYNC_CODE=perhaps"),
    {"macbook: last sync": "FAIL"},
    "must be 0 or 1",
)
UNREADABLE = Fault(
    "index unreadable",
    damage_the_index,
    {"macbook: last sync": "FAIL"},
    "open DigUp on macbook",
    repair_the_index,
)
FIRST_PASS = Fault(
    "DigUp's first pass not done",
    hide_the_index,
    {"macbook: last sync": "WARN"},
    "open DigUp on macbook",
    show_the_index,
)
OLD_SYNC = Fault(
    "sync older than its limit",
    confirm_long_ago,
    {"macbook: last confirmed": "WARN"},
    "hours ago (warned from 24 on)",
)
TAILSCALE_SSH = Fault(
    "Tailscale SSH in check mode",
    check_as_tailscale,
    {"macbook: last sync": "FAIL"},
    "tailscale set --ssh=false",
    answer_as_sshd,
)
INCOMPLETE = Fault(
    "landing incomplete",
    break_off_a_delivery,
    {"raspberrypi: delivery of macbook": "WARN"},
    "incomplete for",
)
REFUSED = Fault(
    "copy refused",
    lambda rig: rig.schema(4),
    {"raspberrypi: delivery of macbook": "FAIL", "macbook: last sync": "FAIL"},
    "refused since",
    lambda rig: rig.schema(5),
)
NEWER_SCHEMA = Fault(
    "schema newer than known",
    lambda rig: rig.schema(6),
    {"raspberrypi: index of macbook": "WARN"},
    "git pull, then ansible-playbook site.yml",
    lambda rig: rig.schema(5),
)
NO_CURRENT = Fault(
    "current missing",
    lambda rig: (rig.source / "current").unlink(),
    {"raspberrypi: delivery of macbook": "FAIL"},
    "hermes-digup publish --source macbook",
    Rig.publish,
)
BROKEN_ENVIRONMENT = Fault(
    "server environment broken",
    lambda rig: rig.environment.unlink(),
    {"raspberrypi: MCP server": "FAIL", "raspberrypi: hermes-digup doctor": "FAIL"},
    "site.yml --limit raspberrypi",
)
READABLE = Fault(
    "config.env world-readable",
    lambda rig: rig.config.chmod(0o644),
    {"raspberrypi: settings": "FAIL"},
    "chmod 600",
    lambda rig: rig.config.chmod(0o600),
)
UNPINNED = Fault(
    "model unpinned", lambda rig: pinned(rig, False), {"mac-mini: model": "WARN"}, "site.yml --limit mac-mini"
)
UNLOADED = Fault(
    "model unloaded",
    lambda rig: rig.omlx.state.loaded.clear(),
    {"mac-mini: model": "WARN"},
    "site.yml --limit mac-mini",
)
WRONG_MODEL = Fault(
    "wrong model behind the name",
    lambda rig: setattr(rig.omlx, "model", AnotherModel()),
    {"raspberrypi: query vectors, macbook": "FAIL", "raspberrypi: query vectors, macbook, code": "FAIL"},
    "another model answers",
    lambda rig: setattr(rig.omlx, "model", HashedWords()),
)
# Those of a row concern the same part of the site; in a long run each of them comes alone.
TOGETHER = [
    [NEWER_SCHEMA, LAST_RUN_FAILED, DISABLED, UNPINNED, READABLE, OLD_SYNC],
    [NO_CURRENT, FIRST_PASS, NOT_LOADED, UNLOADED],
]
ALONE = [
    *(fault for together in TOGETHER for fault in together),
    *(UNREADABLE, TAILSCALE_SSH, INCOMPLETE, REFUSED, BROKEN_ENVIRONMENT, WRONG_MODEL),
]
ROUNDS = [*([fault] for fault in ALONE), []] if SOAK else [*TOGETHER, []]


def test_what_the_doctor_says_mends_what_it_names(site: Site, omlx: OmlxDouble, tmp_path: Path) -> None:
    rig = Rig(site, omlx, tmp_path / "report.json")
    for together in ROUNDS:
        print(f"--- {names(together)}")
        suffer(rig, together)

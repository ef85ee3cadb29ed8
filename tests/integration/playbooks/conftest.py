"""Three demo hosts in a folder of their own, deployed once by the real site.yml. Tests leave them healthy."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.doubles import digup
from tests.doubles.model import HashedWords
from tests.doubles.omlx import OmlxDouble
from tests.soak import SOAK

ROOT = Path(__file__).parents[3]
# One deployed site after another, a playbook for each fault: only with SOAK=1.
LONG = ["test_doctor.py", "test_roll_back.py", "test_two_laptops.py", "test_update.py"]
collect_ignore = [] if SOAK else LONG
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
SAMPLES = ROOT / "tests" / "doubles" / "samples"


@dataclass(frozen=True)
class Ran:
    """One run of a playbook: what it printed, and how many changes it counted per host."""

    code: int
    text: str

    @property
    def changed(self) -> dict[str, int]:
        return {host: int(n) for host, n in re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", self.text, re.M)}


class Site:
    """The demo's inventory below `root`, which stands for a clone of the project.

    Its playbooks are those of `tree`, a folder with all of the project in some version.
    """

    tree = ROOT

    def __init__(self, root: Path) -> None:
        self.root, self.inventory = root, root / "inventories" / "demo"
        shutil.copytree(ROOT / "inventories" / "demo", self.inventory)
        (root / "tests").symlink_to(ROOT / "tests")
        homes = [root / ".demo" / name for name in ("macbook", "mac-mini", "raspberrypi")]
        for home in homes:
            home.mkdir(parents=True, exist_ok=True)
        self.laptop, self.model_server, self.agent = homes
        self.index = self.laptop / "Library" / "Application Support" / "DigUp" / "index.noindex"
        digup.build(SAMPLES, self.index, home=str(self.laptop), model=HashedWords())
        self._make_a_mac_of_the_laptop()

    def _make_a_mac_of_the_laptop(self) -> None:
        """Its syncs are started by a launchd, as on every day."""
        self.launchctl, commands = self.root / "launchctl", ROOT / "tests" / "doubles" / "mac" / "commands.py"
        (self.root / "mac").mkdir()
        for name in ("launchctl", "plutil"):
            (self.root / "mac" / name).symlink_to(commands)
        self.launchctl.write_text(
            f'#!/bin/sh\nexport HOME="{self.laptop}" PRETEND_MAC_STATE="{self.root}/mac/state"\n'
            f'exec "{sys.executable}" "{self.root}/mac/launchctl" "$@"\n'
        )
        self.launchctl.chmod(0o755)
        (self.inventory / "host_vars").mkdir()
        variables = {
            "digup_sync_scheduler": "launchd",
            "digup_sync_run_now": False,
            "digup_sync_launchctl": str(self.launchctl),
            "digup_sync_plutil": str(self.root / "mac" / "plutil"),
        }
        (self.inventory / "host_vars" / "macbook.json").write_text(json.dumps(variables))

    def run(self, playbook: str, *options: str, **variables: object) -> Ran:
        command = [str(PLAYBOOK), "-i", str(self.inventory), playbook, *options]
        done = subprocess.run(
            [*command, "-e", json.dumps(variables)],
            cwd=self.tree,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCALHOST_WARNING": "0"},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        return Ran(done.returncode, done.stdout + done.stderr)

    def sync(self) -> None:
        """One sync through the laptop's own agent, to its end."""
        target = f"gui/{os.getuid()}/com.hermes-digup.sync"
        subprocess.run([self.launchctl, "kickstart", target], check=True)
        deadline = time.monotonic() + 60
        while "\tstate = running\n" in subprocess.check_output([self.launchctl, "print", target], text=True):
            assert time.monotonic() < deadline, "the sync does not end"
            time.sleep(0.05)

    def rows(self, ran: Ran, report: Path) -> dict[str, str]:
        """Level of each row of the doctor's report, by host and check."""
        assert report.exists(), ran.text
        rows = json.loads(report.read_text())["rows"]
        return {f"{row['host']}: {row['check']}": row["level"] for row in rows}

    def search(self, text: str) -> dict[str, Any]:
        """What the deployed command answers to its user."""
        done = subprocess.run(
            [self.agent / ".local" / "bin" / "hermes-digup", "search", text, "--json"],
            env={"HOME": str(self.agent), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return dict(json.loads(done.stdout or done.stderr))

    def ours(self) -> list[str]:
        """Everything below the three homes that bears our name."""
        homes = (self.laptop, self.model_server, self.agent)
        found = (path for home in homes for path in home.rglob("*"))
        return sorted(str(path) for path in found if re.search(r"hermes-digup|digup-s", path.name))


@pytest.fixture(scope="session")
def omlx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OmlxDouble]:
    base = tmp_path_factory.getbasetemp() / "site" / ".demo" / "mac-mini" / ".omlx"
    base.parent.mkdir(parents=True)
    with OmlxDouble(base, model=HashedWords()) as double:
        yield double


@pytest.fixture(scope="session")
def site(omlx: OmlxDouble) -> Site:
    if not PLAYBOOK.exists():
        pytest.skip("ansible-core is not installed here")
    site = Site(omlx.base.parents[2])
    ran = site.run("site.yml")
    assert ran.code == 0, ran.text
    return site


@pytest.fixture
def at_the_very_end() -> None:
    """For the test after which the site is gone: the hook below runs it last."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: "at_the_very_end" in getattr(item, "fixturenames", ()))

"""The three hosts as the tests handle them: consoles, network, and the playbooks that a person runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults import Row

ENGINE = os.environ.get("CONTAINER_ENGINE", "podman")
ROOT = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"])
SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
KNOWN_HOSTS = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "known_hosts"
NETWORK = f"hermes-digup-{os.environ.get('TEST_RUN', 'test')}-tailnet"
HOME = "/home/pi"
SOURCES = f"{HOME}/.local/share/hermes-digup/sources"
SYNC = f"{HOME}/Library/Application Support/hermes-digup"
LABEL = "gui/1000/com.hermes-digup.sync"
ADD_FILE = f"""
import sys
from pathlib import Path
from tests.doubles.digup import Index, read_sample
from tests.doubles.model import HashedWords
folder = Path("{HOME}/Library/Application Support/DigUp/index.noindex")
with Index(folder, home="{HOME}", model=HashedWords()) as index:
    index.add(read_sample(sys.stdin.read()))
"""


def call(*words: str | Path, check: bool = True, text: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, input=text)
    assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done


def wait_for(fact: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.1)


class Host:
    """One of them; `run` is its console, which needs neither network nor sshd."""

    def __init__(self, name: str) -> None:
        self.name, self.container = name, f"{NETWORK}-{name}"
        self._place: list[str] = []

    def run(self, script: str, *, user: str = "pi", check: bool = True, text: str = "") -> str:
        home = HOME if user == "pi" else "/root"
        words = [ENGINE, "exec", "-i", "-u", user, "-e", f"HOME={home}", "-w", home, self.container]
        return call(*words, "sh", "-c", script, check=check, text=text).stdout

    def leave_the_network(self) -> None:
        """No packet comes or goes any more, and nobody logs in: a lid that was closed."""
        found = json.loads(call(ENGINE, "inspect", self.container).stdout)[0]
        here = found["NetworkSettings"]["Networks"][NETWORK]
        self._place = ["--ip", here["IPAddress"], "--mac-address", here["MacAddress"]]
        call(ENGINE, "network", "disconnect", NETWORK, self.container)
        self.hang_up()

    def come_back(self) -> None:
        """With the address that it had: peers find it at once."""
        words = ["network", "connect", *self._place, "--alias", self.name, NETWORK, self.container]
        call(ENGINE, *words)
        self.run("systemctl start ssh", user="root")

    def hang_up(self) -> None:
        """Ends also the sessions that Ansible keeps open."""
        self.run("systemctl stop ssh; pkill -x 'sshd.*' || true", user="root")

    def new_host_key(self) -> None:
        self.hang_up()
        file = "/etc/ssh/ssh_host_ed25519_key"
        self.run(f"rm {file}*; ssh-keygen -q -t ed25519 -N '' -f {file}; systemctl start ssh", user="root")

    def reboot(self) -> None:
        call(ENGINE, "restart", "--time", "0", self.container)
        states = ("running", "degraded")
        wait_for(lambda: self.run("systemctl is-system-running", user="root", check=False).strip() in states)


class Net:
    """The laptop, the model server and the Pi."""

    def __init__(self) -> None:
        self.laptop, self.model_server, self.pi = map(Host, ("macbook", "mac-mini", "raspberrypi"))

    def type(self, command: str) -> None:
        """Runs a command as a person types it in the project's folder; it is told the inventory besides."""
        code, text = self._typed(command)
        assert code == 0, text

    def _typed(self, command: str) -> tuple[int, str]:
        folders = (SCENARIO / "inventory", ROOT / "molecule" / "shared" / "inventory")
        done = subprocess.run(
            [*shlex.split(command), *(f"--inventory={folder}" for folder in folders)],
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def doctor(self) -> dict[str, Row]:
        """Every row of doctor.yml, by "host: check"."""
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            code, text = self._typed(f"ansible-playbook playbooks/doctor.yml -e doctor_report_path={report}")
            assert report.exists(), text
            rows = json.loads(report.read_text())["rows"]
        assert (code != 0) == any(row["level"] == "FAIL" for row in rows), text
        assert not re.search(r" changed=[1-9]", text), text
        return {
            f"{row['host']}: {row['check']}": Row(row["level"], row["detail"], row["fix"]) for row in rows
        }

    def ask_hermes(self, question: str) -> str:
        """What Hermes's own client hands on to its model."""
        script = (SCENARIO / "tests" / "ask_hermes.py").read_text()
        return self.pi.run(
            f".hermes/hermes-agent/venv/bin/python - {shlex.quote(question)} 2>&1 | tail -n 1", text=script
        )

    def search(self, words: str) -> dict[str, Any]:
        """What the deployed command answers on the Pi."""
        return dict(json.loads(self.pi.run(f".local/bin/hermes-digup search --json {shlex.quote(words)}")))

    def finds(self, words: str, name: str) -> bool:
        hits = self.search(words)["hits"]
        return bool(hits) and (hits[0]["path"], hits[0]["machine"]) == (f"{HOME}/Documents/{name}", "macbook")

    # ------------------------------------------------------------ the laptop

    def write_note(self, name: str, text: str) -> None:
        """DigUp indexes a new file, Documents/NAME."""
        sample = f"path: Documents/{name}\nkind: doc\nmodified: 2026-03-01T09:00:00\n---\n{text}\n"
        self.laptop.run(f"cd /opt && python3 -c {shlex.quote(ADD_FILE)}", text=sample)

    def start_sync(self) -> None:
        """Through the laptop's own agent."""
        self.laptop.run(f"launchctl kickstart {LABEL}")

    def is_syncing(self) -> bool:
        return "\tstate = running\n" in self.laptop.run(f"launchctl print {LABEL}")

    def sync(self) -> int:
        """One sync, to its end; its exit code."""
        self.start_sync()
        return self.end_of_sync()

    def end_of_sync(self) -> int:
        wait_for(lambda: not self.is_syncing(), 120)
        return int(self.last_sync()["exit_code"])

    def last_sync(self) -> dict[str, Any]:
        return dict(json.loads(self.laptop.run(f"cat '{SYNC}/status.json'")))

"""A Pi on this machine: a home folder that the real role sets up, and versions of the program."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.doubles.delivery import deliver

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
PLAY = """
- hosts: all
  gather_facts: false
  environment: {HOME: "{{ hermes_digup_home }}"}
  tasks:
    - ansible.builtin.setup: {gather_subset: [min]}
    - ansible.builtin.include_role: {name: hermes_digup}
"""
# Puts a wheel where the role expects the one that it had built.
UV = """#!/bin/sh
while [ "$1" != --out-dir ]; do shift; done
rm -rf "$2" && mkdir -p "$2" && cp '{wheel}' "$2"
"""


@dataclass(frozen=True)
class Ran:
    """One run of the role."""

    code: int
    changed: int
    text: str


class Pi:
    """A home folder, and the role that works on it. `root` stands for the clone that the role is run from."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, root / "home"
        self.data = self.home / ".local/share/hermes-digup"
        self.home.mkdir(parents=True)
        (root / "play.yml").write_text(PLAY)

    def start(self, wheel: Path, **variables: object) -> subprocess.Popen[str]:
        """Starts the role with a version of the program."""
        clone = self.root / "clones" / wheel.parent.name
        clone.mkdir(parents=True, exist_ok=True)
        if not (clone / "templates").exists():
            (clone / "templates").symlink_to(ROOT / "templates")
        uv = clone / "uv"
        uv.write_text(UV.format(wheel=wheel))
        uv.chmod(0o755)
        wheels = os.environ.get("DEMO_WHEELS")
        given = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "project_root": str(clone),
            "hermes_digup_home": str(self.home),
            "hermes_digup_python": sys.executable,
            "hermes_digup_require_hermes": False,
            "hermes_digup_sources": ["macbook"],
            "hermes_digup_uv": str(uv),
            "hermes_digup_pip_args": ["--no-index", "--find-links", wheels] if wheels else [],
        }
        command = [BIN / "ansible-playbook", "-i", "raspberrypi,", self.root / "play.yml"]
        return subprocess.Popen(
            [*map(str, command), "-e", json.dumps({**given, **variables})],
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCALHOST_WARNING": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, wheel: Path, **variables: object) -> Ran:
        return ended(self.start(wheel, **variables))

    @property
    def version(self) -> str:
        """What the command says of itself."""
        command = [self.home / ".local/bin/hermes-digup", "--version"]
        return subprocess.check_output(command, env={"HOME": str(self.home)}, text=True).strip()

    @property
    def environments(self) -> int:
        return len([item for item in (self.data / "venvs").iterdir() if item.is_dir()])


def ended(process: subprocess.Popen[str]) -> Ran:
    """Waits for a run of the role."""
    text, _ = process.communicate(timeout=300)
    changed = re.search(r"^raspberrypi +: ok=\d+ +changed=(\d+)", text, re.M)
    return Ran(process.returncode, int(changed[1]) if changed else 0, text)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this very source."""
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([BIN / "uv", "build", "-q", "--no-cache", "--wheel", "-o", folder, ROOT], check=True)
    return next(folder.glob("*.whl"))


def another(built: Path, folder: Path, version: str, **lines: str) -> Path:
    """The same wheel with another version; `lines` are put in front of modules, __ stands for a slash."""
    old = built.name.split("-")[1]
    folder.mkdir()
    made = folder / built.name.replace(f"-{old}-", f"-{version}-")
    ahead = {f"hermes_digup/{module.replace('__', '/')}.py": line for module, line in lines.items()}
    with zipfile.ZipFile(built) as source, zipfile.ZipFile(made, "w") as target:
        for item in source.infolist():
            data = source.read(item).decode()
            name = item.filename.replace(f"-{old}.dist-info", f"-{version}.dist-info")
            if ".dist-info/" in name:
                data = data.replace(f"-{old}.dist-info", f"-{version}.dist-info")
                data = data.replace(f"\nVersion: {old}\n", f"\nVersion: {version}\n")
            target.writestr(name, ahead.get(name, "") + data)
    return made


@pytest.fixture(scope="session")
def former(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return another(built, tmp_path_factory.mktemp("wheels") / "former", "0.0.9")


@pytest.fixture(scope="session")
def broken(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version whose command runs and whose server does not."""
    line = "raise RuntimeError('a tool is missing')\n"
    return another(built, tmp_path_factory.mktemp("wheels") / "broken", "0.9.9", cli__serving=line)


@pytest.fixture(scope="module")
def pi(former: Path, databases: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Pi:
    """A Pi with the former version and one laptop's index."""
    pi = Pi(tmp_path_factory.mktemp("a pi"))
    ran = pi.run(former)
    assert ran.code == 0, ran.text
    assert deliver(pi.home, "macbook", databases, confirmed=datetime.now(timezone.utc)).state == "published"
    return pi

"""A Pi's home folder on this machine, and versions of the program to put there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.doubles.delivery import deliver

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
TOOLS = ["search_files", "search_code", "read_passage", "read_file", "browse_files", "index_status"]


class Pi:
    """A home folder, and the role's module that puts a version of the program there."""

    def __init__(self, home: Path) -> None:
        self.home, self.data = home, home / ".local/share/hermes-digup"
        self.venvs = self.data / "venvs"

    def start(self, wheel: Path, **arguments: object) -> subprocess.Popen[str]:
        """Brings a wheel as the role does, and starts the module."""
        name = wheel.parent.name
        incoming = self.venvs / f"{name}.incoming"
        incoming.mkdir(parents=True, exist_ok=True)
        shutil.copy(wheel, incoming)
        shutil.copy(ROOT / "templates/pi/requirements.txt", incoming)
        wheels = os.environ.get("DEMO_WHEELS")
        given = {
            "folder": str(self.venvs),
            "current": str(self.data / "venv"),
            "former": str(self.data / "venv-former"),
            "name": name,
            "python": sys.executable,
            "incoming": str(incoming),
            "pip_args": ["--no-compile", *(["--no-index", "--find-links", wheels] if wheels else [])],
            "tools": TOOLS,
            "home": str(self.home),
            "host": "raspberrypi",
        }
        command = [
            str(BIN / "ansible"),
            "localhost",
            "-i",
            "localhost,",
            "-c",
            "local",
            "-m",
            "digup_environment",
        ]
        variables = {"ansible_python_interpreter": sys.executable}
        return subprocess.Popen(
            [*command, "-a", json.dumps({**given, **arguments}), "-e", json.dumps(variables)],
            cwd=ROOT,
            env={**os.environ, "HOME": str(self.home), "ANSIBLE_NOCOLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def put(self, wheel: Path, **arguments: object) -> tuple[int, str]:
        """Exit code and words of the module."""
        with self.start(wheel, **arguments) as process:
            return process.wait(), process.stdout.read() if process.stdout else ""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this very source."""
    folder = tmp_path_factory.mktemp("wheels") / "built"
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


@pytest.fixture
def pi(databases: list[Path], tmp_path: Path) -> Pi:
    """A Pi with one laptop's index and without the program."""
    assert deliver(tmp_path, "macbook", databases, confirmed=datetime.now(timezone.utc)).state == "published"
    return Pi(tmp_path)

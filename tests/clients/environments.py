"""Where the real clients live: each in an environment of its own, made once and used again.

They stand in `${XDG_CACHE_HOME:-~/.cache}/hermes-digup/clients/<name>-<version>`, outside the clone, so that
a second run is quick and needs no network. What cannot be had is skipped by name; with CI=true it is a
failure.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PINS = Path(__file__).parent / "pins"
MAKING_S = 280
TOLD = 400


class NotToBeHadError(Exception):
    """What is missing on this machine, in one sentence."""


def python_client(name: str) -> Path:
    """The `bin` folder of an environment with the PyPI package `name` at its pinned version.

    Skips the test (fails in CI) where it cannot be had.
    """
    pins = PINS / f"{name}.txt"
    return _had(name, _version(pins, rf"^{re.escape(name)}(?:\[\w+\])?==(\S+)$"), pins, _with_uv) / "bin"


def inspector() -> Path:
    """The command of MCP Inspector. Skips the test (fails in CI) where it cannot be had."""
    pins = PINS / "inspector" / "package-lock.json"
    version = _version(PINS / "inspector" / "package.json", r'inspector": "([0-9.]+)"')
    return _had("inspector", version, pins, _with_npm) / "node_modules" / ".bin" / "mcp-inspector"


def _had(name: str, version: str, pins: Path, make: Callable[[Path, Path], None]) -> Path:
    try:
        return kept(f"{name}-{version}", pins, make)
    except NotToBeHadError as missing:
        told = f"{name} {version} cannot be had: {missing}"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)


def kept(name: str, pins: Path, make: Callable[[Path, Path], None]) -> Path:
    """The folder of an environment; made first when it is not there, is of other pins, or lost its Python."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-digup" / "clients"
    cache.mkdir(parents=True, exist_ok=True)
    folder, want = cache / name, hashlib.sha256(pins.read_bytes()).hexdigest()
    with _alone(cache / f".{name}.lock"):
        if not _is_whole(folder, want):
            making = cache / f".{name}.making"
            shutil.rmtree(making, ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)
            making.mkdir()
            make(making, pins)
            (making / "made-of").write_text(want)
            making.rename(folder)
    return folder


def _is_whole(folder: Path, want: str) -> bool:
    mark, python = folder / "made-of", folder / "bin" / "python"
    return mark.exists() and mark.read_text() == want and (python.exists() or not python.is_symlink())


def _with_uv(folder: Path, pins: Path) -> None:
    if not (3, 11) <= sys.version_info < (3, 14):
        raise NotToBeHadError("it needs Python 3.11 to 3.13")
    places = [Path(sys.executable).parent, ROOT / ".venv" / "bin"]
    uv = next((str(each / "uv") for each in places if (each / "uv").exists()), None) or shutil.which("uv")
    if uv is None:
        raise NotToBeHadError("there is no uv here (make test brings it)")
    # Relocatable: the folder gets its name when all is in it.
    _run([uv, "venv", "--relocatable", "--allow-existing", "--python", sys.executable, str(folder)])
    install = [uv, "pip", "install", "--python", str(folder), "-r", str(pins), "--system-certs"]
    try:
        _run([*install, "--offline"])
    except NotToBeHadError:
        _run(install)


def _with_npm(folder: Path, pins: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotToBeHadError("there is no npm here")
    for each in ("package.json", "package-lock.json"):
        shutil.copy(pins.parent / each, folder)
    quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    # Not `ci`: it insists on an optional package for another system, which npm itself left out of the lock.
    _run([npm, "install", "--prefer-offline", *quiet, "--prefix", str(folder)])


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=MAKING_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise NotToBeHadError(f"{Path(command[0]).name} {command[1]} took over {MAKING_S} s") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[:TOLD]
        raise NotToBeHadError(f"{Path(command[0]).name} {command[1]} ended with {done.returncode}: {said}")


def _version(pins: Path, pattern: str) -> str:
    found = re.search(pattern, pins.read_text("utf-8"), re.MULTILINE)
    assert found, f"no pinned version in {pins}"
    return found[1]


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Two test processes never make the same environment at once."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield

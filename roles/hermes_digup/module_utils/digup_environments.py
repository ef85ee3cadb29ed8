"""Environments of the program side by side; a link names the one in use. Part of the Ansible run.

    FOLDER/<name>/     one environment; whole when it holds `.complete`
    FOLDER/.lock       held by the run that builds, switches or clears away
    current, former    links to the one in use and to the one before

A running server keeps the environment it was started from, so the former one stays until the next switch.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from ansible.module_utils.digup_mcp_talk import converse_with

MARK = ".complete"  # written last
MEGABYTE = 1 << 20
FIRST_MB = 250  # what the first one needs (it takes 190); later ones are judged by the one in use
BUILD_S, PROOF_S = 1800, 60
INCOMING, ABANDONED_S = ".incoming", 86400


class NotBuiltError(Exception):
    """Nothing new is in use. The text is the reason, the rest of a sentence; `hint` may say what helps."""

    def __init__(self, reason, hint=""):
        super().__init__(reason)
        self.hint = hint


class Shelf:
    """The environments of one home."""

    def __init__(self, folder, current, former):
        self.folder, self.current, self.former = Path(folder), Path(current), Path(former)

    def path(self, name):
        return self.folder / name

    def is_whole(self, name):
        return (self.path(name) / MARK).exists()

    def others(self, name):
        """Folders that are behind no link, are not the named one, and that no other run has just filled."""
        kept = {self.path(name), target(self.current), target(self.former)}
        found = self.folder.iterdir() if self.folder.is_dir() else []
        return [item for item in found if item.is_dir() and item not in kept and not is_fresh(item)]

    @contextmanager
    def alone(self, patience):
        """Two runs on one home follow each other. Raises NotBuiltError when the other takes too long."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            deadline = time.monotonic() + patience
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() >= deadline:
                        reason = "another run has been at work on this home for %d s" % patience
                        raise NotBuiltError(reason, "Wait until it has ended, then run this again.") from None
                    time.sleep(0.2)
            yield

    def switch(self, name):
        """Puts an environment in use and remembers the one that was. Returns whether that is a change."""
        before = target(self.current)
        if before == self.path(name):
            return False
        if before is not None and before.exists():
            point(self.former, before)
        point(self.current, self.path(name))
        return True

    def back(self):
        """Puts the former one in use. Raises NotBuiltError when there is none."""
        before = target(self.former)
        if before is None or not before.exists():
            raise NotBuiltError("there is no former version here to go back to")
        point(self.current, before)
        self.former.unlink()


def is_fresh(folder):
    """Whether this is what a run brought for an environment that it may still be waiting to build."""
    return folder.name.endswith(INCOMING) and time.time() - folder.stat().st_mtime < ABANDONED_S


def target(link):
    """Where a link points, or None when there is no link."""
    return link.readlink() if link.is_symlink() else None


def point(link, there):
    """Makes a link, or turns it in one step."""
    new = link.with_name(link.name + ".new")
    if new.is_symlink():
        new.unlink()
    new.symlink_to(there)
    new.replace(link)


def size_mb(folder):
    """Megabytes that the files below a folder take."""
    found = (Path(top, name) for top, _, names in os.walk(str(folder)) for name in names)
    return sum(path.lstat().st_blocks * 512 for path in found) // MEGABYTE


def free_mb(folder):
    return shutil.disk_usage(str(folder)).free // MEGABYTE


def check_room(shelf):
    """Raises NotBuiltError when a further environment would hardly fit."""
    in_use = target(shelf.current)
    need = size_mb(in_use) * 5 // 4 if in_use is not None and in_use.exists() else FIRST_MB
    free = free_mb(shelf.folder)
    if free < need:
        reason = "%s has %d MB free, and the program needs %d MB" % (shelf.folder, free, need)
        raise NotBuiltError(reason, "Free some space there, then run this again.")


def run(argv, what):
    """Runs one step. Raises NotBuiltError with the last line of what it complained about."""
    try:
        done = subprocess.run(  # noqa: S603  # no shell
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=BUILD_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuiltError("%s: %s" % (what, error)) from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        raise NotBuiltError("%s: %s" % (what, said[-1] if said else "it ended with %d" % done.returncode))


def build(shelf, name, given):
    """Builds and proves an environment; on a fault nothing of it stays. `given` is as the module's."""
    check_room(shelf)
    venv = shelf.path(name)
    shutil.rmtree(str(venv), ignore_errors=True)  # what an interrupted run left
    try:
        run([given["python"], "-I", "-m", "venv", str(venv)], "its environment could not be made")
        install(venv, given)
        prove(venv, given)
        (venv / MARK).touch()
    except BaseException:
        shutil.rmtree(str(venv), ignore_errors=True)
        raise


def install(venv, given):
    pip = [
        str(venv / "bin/python"),
        "-I",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ]
    locked = ["--require-hashes", "--only-binary", ":all:", "-r", given["incoming"] + "/requirements.txt"]
    try:
        run(pip + given["pip_args"] + locked, "its packages could not be installed")
    except NotBuiltError as error:
        hint = (
            "If that host cannot reach a package index, name one in hermes_digup_pip_args and run this again."
        )
        raise NotBuiltError(str(error), hint) from None
    wheels = [str(path) for path in Path(given["incoming"]).glob("*.whl")]
    run([*pip, "--no-deps", "--no-index", *wheels], "the program could not be installed")


def prove(venv, given):
    """The self test: the program says its version, and its server lists the tools."""
    program = str(venv / "bin/hermes-digup")
    run([program, "--version"], "the new program does not run")
    answer = converse_with([program, "serve"], dict(given, timeout=PROOF_S))
    if answer["problem"]:
        raise NotBuiltError("the new server failed its self test: %s" % answer["problem"])
    if set(answer["tools"]) != set(given["tools"]):
        raise NotBuiltError(
            "the new server failed its self test: it lists only %s" % ", ".join(answer["tools"])
        )

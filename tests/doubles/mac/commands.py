#!/usr/bin/python3
"""Doubles of the macOS commands that the roles call, chosen by the name that this file is called as.

launchctl keeps agents as launchd does and really runs their programs; calendar times pass unnoticed. What it
prints follows real outputs, down to the tabs and exit codes. Its memory is /var/lib/pretend-mac (or
PRETEND_MAC_STATE); a file `no-session` there means that nobody is logged in at the screen.
"""

from __future__ import annotations

import fcntl
import json
import os
import plistlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

STATE = Path(os.environ.get("PRETEND_MAC_STATE", "/var/lib/pretend-mac"))
DOMAIN = f"gui/{os.getuid()}"


def fail(message: str, code: int = 1) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)


@contextmanager
def memory() -> Iterator[dict[str, Any]]:
    """What launchd knows; changes are kept. One caller at a time."""
    STATE.mkdir(parents=True, exist_ok=True)
    with (STATE / "launchd.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = json.loads(file.read() or '{"agents": {}, "disabled": {}}')
        yield known
        file.truncate(0)
        file.write(json.dumps(known))


class Launchctl:
    """One call. Every method is a verb."""

    def __init__(self, words: list[str]) -> None:
        self.words = [word for word in words[1:] if not word.startswith("-")]
        self.restart = "-k" in words
        target = self.words[0] if self.words else ""
        self.domain = "/".join(target.split("/")[:2])
        self.label = "/".join(target.split("/")[2:])
        if self.domain != DOMAIN or (STATE / "no-session").exists():
            fail(f"Could not find domain for user gui: {self.domain.partition('/')[2]}", 112)

    def bootstrap(self) -> None:
        content = plistlib.loads(Path(self.words[1]).read_bytes())
        label = content["Label"]
        with memory() as known:
            if label in known["agents"] or known["disabled"].get(label):
                fail(
                    "Bootstrap failed: 5: Input/output error\n"
                    "Try re-running the command as root for richer errors.",
                    5,
                )
            known["agents"][label] = {"path": self.words[1], "runs": 0, "pid": 0, "code": None}
        if content.get("RunAtLoad"):
            start(label)

    def bootout(self) -> None:
        with memory() as known:
            agent = known["agents"].pop(self.label, None)
        if agent is None:
            fail("Boot-out failed: 3: No such process", 3)
        end(agent["pid"])

    def kickstart(self) -> None:
        agent = self._agent()
        if agent["pid"] and self.restart:
            end(agent["pid"])
        elif agent["pid"]:
            return
        start(self.label)

    def enable(self) -> None:
        with memory() as known:
            known["disabled"][self.label] = False

    def disable(self) -> None:
        with memory() as known:
            known["disabled"][self.label] = True

    def print_disabled(self) -> None:
        with memory() as known:
            lines = [
                f'\t"{label}" => {"disabled" if off else "enabled"}'
                for label, off in known["disabled"].items()
            ]
        print("\n".join(["disabled services = {", *lines, "}", "login item associations = {", "}"]))

    def print(self) -> None:
        if not self.label:
            print(f"{self.domain} = {{\n\ttype = user\n}}")
            return
        agent = self._agent()
        code = "(never exited)" if agent["code"] is None else agent["code"]
        lines = [
            f"active count = {int(agent['pid'] > 0)}",
            f"path = {agent['path']}",
            "type = LaunchAgent",
            f"state = {'running' if agent['pid'] else 'not running'}",
            "event triggers = {\n\t\tx = {\n\t\t\tstate = active\n\t\t}\n\t}",
            f"runs = {agent['runs']}",
            *([f"pid = {agent['pid']}"] if agent["pid"] else []),
            f"last exit code = {code}",
        ]
        print(f"{self.label} = {{\n\t" + "\n\t".join(lines) + "\n}")

    def _agent(self) -> dict[str, Any]:
        with memory() as known:
            agent = known["agents"].get(self.label)
        if agent is None:
            fail(f'Could not find service "{self.label}" in domain for user gui: {os.getuid()}', 113)
        return dict(agent)


def start(label: str) -> None:
    """Runs the agent's program apart from this process, and notes how it ends."""
    ready, started = os.pipe()
    if os.fork():
        os.close(started)
        os.read(ready, 1)
        return
    os.setsid()
    for number in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    with memory() as known:
        agent = known["agents"][label]
        process = subprocess.Popen(
            plistlib.loads(Path(agent["path"]).read_bytes())["ProgramArguments"],
            cwd="/",
            env={"HOME": str(Path.home()), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
            start_new_session=True,
        )
        agent |= {"pid": process.pid, "runs": agent["runs"] + 1}
    os.write(started, b".")
    os.close(started)
    code = process.wait()
    with memory() as known:
        if known["agents"].get(label, {}).get("pid") == process.pid:
            known["agents"][label] |= {"pid": 0, "code": code}
    os._exit(0)


def end(pid: int) -> None:
    """SIGTERM to the program, as launchd does it."""
    if pid:
        os.kill(pid, signal.SIGTERM)


def defaults(words: list[str]) -> None:
    """`defaults read DOMAIN KEY`."""
    _verb, domain, key = words
    path = Path.home() / "Library" / "Preferences" / f"{domain}.plist"
    values = plistlib.loads(path.read_bytes()) if path.exists() else {}
    if key not in values:
        fail(f"The domain/default pair of ({domain}, {key}) does not exist")
    print(values[key])


def plutil(words: list[str]) -> None:
    """`plutil -lint FILE`."""
    try:
        plistlib.loads(Path(words[-1]).read_bytes())
    except (OSError, ValueError) as error:
        fail(f"{words[-1]}: {error}")
    print(f"{words[-1]}: OK")


def sw_vers(words: list[str]) -> None:
    version = {"-productVersion": "15.6", "-buildVersion": "24G84"}
    print(version.get("".join(words[:1]), "ProductName:\t\tmacOS\nProductVersion:\t\t15.6"))


def pmset(_words: list[str]) -> None:
    print("System-wide power settings:\n sleep                1 (sleep prevented by nothing)")


def fdesetup(_words: list[str]) -> None:
    print("FileVault is On.")


def launchctl(words: list[str]) -> None:
    call = Launchctl(words)
    getattr(call, words[0].replace("-", "_"))()


if __name__ == "__main__":
    globals()[Path(sys.argv[0]).name](sys.argv[1:])

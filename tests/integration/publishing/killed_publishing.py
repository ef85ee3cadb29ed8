"""Publishes in children that die at their nth change to the file system (a program of the crash tests).

Reads lines `N SOURCE`, forks a publisher for each, and answers with the signal that ended it, or 0.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from hermes_digup.publishing import publish

CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.utime",
    "os.chmod",
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Killer:
    """Counts changes and ends the process before the one whose turn it is."""

    def __init__(self, step: int) -> None:
        self.left = step

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        if event not in CHANGES and not (event == "open" and isinstance(args[2], int) and args[2] & WRITING):
            return
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def run(step: int, source: Path) -> int:
    child = os.fork()
    if child == 0:
        sys.addaudithook(Killer(step))
        publish(source)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


for line in sys.stdin:
    number, _, path = line.rstrip("\n").partition(" ")
    sys.stdout.write(f"{run(int(number), Path(path))}\n")
    sys.stdout.flush()

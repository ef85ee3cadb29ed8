"""The host that the real clients meet, and how they are run."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = ["search_files", "search_code", "read_passage", "read_file", "browse_files", "index_status"]
TOKEN = "planted-token-0123456789"


@dataclass(frozen=True)
class Pi:
    """A host on which `hermes-digup` is installed and one laptop's index was delivered."""

    home: Path
    command: str

    @property
    def environ(self) -> dict[str, str]:
        """What a service gives its children."""
        return {"HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


def lines_of(done: subprocess.CompletedProcess[str]) -> str:
    """Both streams, for the message of a failing test."""
    return f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"


def run(
    *command: str | Path, environ: dict[str, str], given: str = "", timeout_s: int = 120
) -> subprocess.CompletedProcess[str]:
    """Runs a client with nothing of this machine's settings; `given` is its standard input."""
    return subprocess.run(
        [str(each) for each in command],
        env={"PATH": os.environ["PATH"], **environ},
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )

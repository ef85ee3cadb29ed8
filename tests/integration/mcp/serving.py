"""How a client starts the server."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp import StdioServerParameters


def parameters(home: Path, *options: str, **environ: str) -> StdioServerParameters:
    """The server in a bare environment, as Hermes gives it."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "hermes_digup", "serve", *options],
        env={"HOME": str(home), "PATH": os.environ["PATH"], **environ},
    )

"""The process that copies a live folder for a running server (`python -m`), with low priority."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from hermes_digup.errors import DigupError
from hermes_digup.publishing.live import LiveFolder

_NICE = 10


def main(arguments: list[str]) -> int:
    """Looks once at the folder of the first argument, with the cache of the second. Returns an exit code."""
    folder, cache_dir = map(Path, arguments)
    os.nice(_NICE)
    try:
        outcome = LiveFolder(folder, cache_dir).refresh()
    except DigupError as error:
        logging.getLogger(__name__).warning("live folder=%s problem=%s", folder, error)
        return error.exit_code
    return outcome.exit_code if outcome and outcome.disk_full else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

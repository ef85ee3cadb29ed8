"""The face for people and scripts: `hermes-digup`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from hermes_digup.cli.parser import build_parser
from hermes_digup.errors import DigupError

__all__ = ["main"]

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code. The foreseeable ends in one sentence on standard error."""
    # Bytes that are no UTF-8 reach argv as half surrogates, which could be neither searched nor printed.
    given = [each.encode("utf-8", "replace").decode() for each in (sys.argv[1:] if argv is None else argv)]
    arguments = build_parser().parse_args(given)
    # Four calls at once on a Pi's four cores: each product on one thread. numpy looks here when it loads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imported here, so that --version and --help stay light.
    from hermes_digup.cli.commands import run

    try:
        return run(arguments, os.environ)
    except DigupError as error:
        sys.stderr.write(f"hermes-digup: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough; nothing may be flushed into the closed pipe at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0

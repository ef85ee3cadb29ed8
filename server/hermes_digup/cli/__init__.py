"""The face for people and scripts: `hermes-digup`."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hermes_digup.cli.parser import build_parser
from hermes_digup.errors import DigupError

__all__ = ["main"]

log = logging.getLogger(__name__)
FAILED = 1
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code. Whatever goes wrong ends in one sentence on standard error."""
    _make_output_writable()
    try:
        try:
            return _run(sys.argv[1:] if argv is None else argv)
        finally:
            # Here, where a full disk or a closed pipe can still be told; at the interpreter's end it cannot.
            sys.stdout.flush()
    except DigupError as error:
        return _said(str(error), error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return 0  # the reader (head, less) has seen enough
    except OSError as error:
        _drop_output()
        place = f" ({error.filename})" if error.filename else ""
        return _said(f"{error.strerror or type(error).__name__}{place}.", FAILED)
    except Exception as error:
        log.debug("failed inside", exc_info=True)
        return _said(
            f"It failed inside ({type(error).__name__}), which is a mistake in the program. "
            "With DIGUP_LOG_LEVEL=DEBUG it says where.",
            FAILED,
        )


def _run(given: Sequence[str]) -> int:
    # Bytes that are no UTF-8 reach argv as half surrogates, which could be neither searched nor printed.
    arguments = build_parser().parse_args([each.encode("utf-8", "replace").decode() for each in given])
    # Four calls at once on a Pi's four cores: each product on one thread. numpy looks here when it loads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Imported here, so that --version and --help stay light.
    from hermes_digup.cli.commands import run

    return run(arguments, os.environ)


def _said(sentence: str, code: int) -> int:
    sys.stderr.write(f"hermes-digup: {sentence}\n")
    return code


def _make_output_writable() -> None:
    """Output that is closed takes everything; one that lacks a sign gets it as \\uXXXX."""
    if sys.stderr is None:
        sys.stderr = _nowhere()
    if sys.stdout is None:
        sys.stdout = _nowhere()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What could not be written is not tried again when the interpreter ends."""
    sys.stdout = _nowhere()


def _nowhere() -> io.TextIOWrapper:
    return Path(os.devnull).open("w", encoding="utf-8")

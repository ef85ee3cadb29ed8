"""The words of the command line. Imports nothing heavy, as `--version` and `--help` come from here."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import NoReturn

KINDS = ("screenshot", "image", "pdf", "doc", "audio", "video")
KIND_HELP = f"only this kind, again for another: {', '.join(KINDS)}"


class Parser(argparse.ArgumentParser):
    """A parser that also says what to do when words that begin with a dash were taken for options."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}\n{_hint(message)}")


def _hint(message: str) -> str:
    if re.search(r"arguments are required: (query|ID)", message) or message.startswith("unrecognized"):
        return "What begins with a dash and is no option goes after --, like: hermes-digup search -- -x\n"
    return ""


def build_parser() -> argparse.ArgumentParser:
    """The parser of `hermes-digup`."""
    parser = Parser(
        prog="hermes-digup",
        description="Search and read the files that DigUp has indexed on your Mac.",
        epilog="Settings: ~/.config/hermes-digup/config.env. Exit codes: 0 done, 1 nothing to read or a "
        "failed check, 2 usage or settings, 3 no index, 4 refused copy, 5 disk full, 6 busy, 7 embedding, "
        "130 interrupted. More about one command: hermes-digup COMMAND -h",
    )
    parser.add_argument("--version", action="version", version=f"hermes-digup {version('hermes-digup')}")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    for verb, (fill, short, more) in VERBS.items():
        fill(verbs.add_parser(verb, help=short, description=f"{short[0].upper()}{short[1:]}. {more}"))
    return parser


def whole(low: int, high: int) -> Callable[[str], int]:
    """A type for argparse: a whole number from low to high."""

    def number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not between {low} and {high}")
        return value

    number.__name__ = "whole number"
    return number


def _with_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", choices=("text", "both"), help="text alone, or with structured content")
    parser.add_argument("--http", action="store_true", help="serve over HTTP instead")
    parser.add_argument("--host", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=whole(1, 65535), help="port (default: 8765)")
    parser.add_argument(
        "--name", action="append", default=[], help="another name that clients call this host; repeatable"
    )
    parser.add_argument("--anywhere", action="store_true", help="allow an address that means all networks")


def _search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="what to look for")
    parser.add_argument("--kind", action="append", choices=KINDS, metavar="KIND", help=KIND_HELP)
    parser.add_argument("--folder", default="", help="only in this folder; ~ is the laptop's home")
    parser.add_argument("--code", action="store_true", help="search source code")
    parser.add_argument("--limit", type=whole(1, 50), default=8, metavar="N", help="most hits (default: 8)")
    _with_json(parser)


def _read(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="ID|PATH", help="a hit's id, DigUp's number, or a file's path")
    parser.add_argument("--context", type=whole(0, 3), metavar="N", help="of a hit: neighbours too (0 to 3)")
    parser.add_argument("--offset", type=whole(0, 10**9), metavar="N", help="of a file: where to begin")
    parser.add_argument(
        "--max-chars", type=whole(1, 20_000), metavar="N", help="of a file: most characters (default: 20000)"
    )
    parser.add_argument("--machine", default="", metavar="NAME", help="when several machines have it")
    parser.add_argument("--code", action="store_true", help="from the code index")
    _with_json(parser)


def _browse(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", default="", help="only in this folder; ~ is the laptop's home")
    parser.add_argument("--kind", action="append", choices=KINDS, metavar="KIND", help=KIND_HELP)
    parser.add_argument("--name", default="", metavar="TEXT", help="part of the file name")
    parser.add_argument(
        "--limit", type=whole(1, 200), default=20, metavar="N", help="most files (default: 20)"
    )
    parser.add_argument("--offset", type=whole(0, 10**9), default=0, metavar="N", help="files to skip")
    _with_json(parser)


def _status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="NAME", help="only what was delivered by this laptop")
    _with_json(parser)


def _publish(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="NAME", help="only this laptop's (default: all)")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--force", action="store_true", help="also what was refused before, or is in use")
    way.add_argument("--retire", action="store_true", help="take the source out of use; its files stay")
    _with_json(parser)


VERBS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], str, str]] = {
    "serve": (
        _serve,
        "serve the tools to an agent (MCP)",
        "Over standard input and output, as Hermes starts it; with --http over HTTP, and beyond this machine "
        "only with a token (DIGUP_HTTP_TOKEN).",
    ),
    "search": (
        _search,
        "search files, or code with --code",
        "By meaning and by words; by words alone while no model server answers.",
    ),
    "read": (
        _read,
        "read a hit by its id, or a file by its path",
        "The text that DigUp took from it; exit code 1 when there is none.",
    ),
    "browse": (
        _browse,
        "list indexed files, newest first",
        "All of them, or those of a folder, kind or name.",
    ),
    "status": (
        _status,
        "show what is indexed and how fresh it is",
        "For proofs and for what to mend: hermes-digup doctor.",
    ),
    "doctor": (
        _with_json,
        "check everything, and say how to mend it",
        "Reads only. Exit code 1 when a check failed; warnings are for people.",
    ),
    "publish": (
        _publish,
        "put what a laptop delivered into use",
        "Done by itself after each delivery. A copy that is not sound is refused, and the old one stays.",
    ),
}

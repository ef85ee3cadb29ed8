"""The words of the command line. Imports nothing heavy, as `--version` and `--help` come from here."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.metadata import version

KINDS = ("screenshot", "image", "pdf", "doc", "audio", "video")


def build_parser() -> argparse.ArgumentParser:
    """The parser of `hermes-digup`."""
    parser = argparse.ArgumentParser(
        prog="hermes-digup",
        description="Search and read the files that DigUp has indexed on your Mac.",
        epilog="Settings: ~/.config/hermes-digup/config.env. Exit codes: 0 done, 1 nothing to read or a "
        "fault, 2 usage or settings, 3 no index, 4 refused copy, 5 disk full, 6 busy, 7 embedding.",
    )
    parser.add_argument("--version", action="version", version=f"hermes-digup {version('hermes-digup')}")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    _serve(
        verbs.add_parser("serve", help="serve the tools to an agent (MCP, over standard input and output)")
    )
    _search(verbs.add_parser("search", help="search files, or code with --code"))
    _read(verbs.add_parser("read", help="read a hit by its id, or a file by its path"))
    _browse(verbs.add_parser("browse", help="list indexed files, newest first"))
    _status(verbs.add_parser("status", help="what is indexed and how fresh it is"))
    _with_json(verbs.add_parser("doctor", help="check everything, and say how to mend it"))
    _publish(verbs.add_parser("publish", help="put what a laptop delivered into use"))
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
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: this machine only)"
    )
    parser.add_argument("--port", type=whole(1, 65535), default=8765, help="port (default: 8765)")
    parser.add_argument(
        "--name", action="append", default=[], help="another Host name clients use; repeatable"
    )
    parser.add_argument("--anywhere", action="store_true", help="allow an address that means all networks")


def _search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="+", help="what to look for")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind; repeatable")
    parser.add_argument("--folder", default="", help="only in this folder; ~ is the laptop's home")
    parser.add_argument("--code", action="store_true", help="search source code")
    parser.add_argument("--limit", type=whole(1, 50), default=8, metavar="N", help="most hits (default: 8)")
    _with_json(parser)


def _read(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="ID|PATH", help="a hit's id, DigUp's number, or a file's path")
    parser.add_argument(
        "--context", type=whole(0, 3), default=0, metavar="N", help="neighbours of a hit (0 to 3)"
    )
    parser.add_argument(
        "--offset", type=whole(0, 10**9), default=0, metavar="N", help="character to begin at"
    )
    parser.add_argument(
        "--max-chars",
        type=whole(1, 20_000),
        default=20_000,
        metavar="N",
        help="most characters (default: 20000)",
    )
    parser.add_argument("--machine", default="", help="when several machines have this path")
    parser.add_argument("--code", action="store_true", help="from the code index")
    _with_json(parser)


def _browse(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", default="", help="only in this folder; ~ is the laptop's home")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind; repeatable")
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
    parser.add_argument("--force", action="store_true", help="also what was refused before, or is in use")
    _with_json(parser)

"""The rooms of the package and who may use whom: arrows point down, and each kind of IO has its few doors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "server" / "hermes_digup"

# Everybody may use the two leaves. A room that is not listed uses nothing else of ours.
LEAVES = {"errors", "records"}
ROOMS_USED_BY = {
    "__main__": {"cli"},
    "index": {"settings"},
    "embedding": {"settings"},
    "publishing": {"index", "settings"},
    "service": {"ranking", "embedding", "index", "settings"},
    "doctor": {"service", "publishing", "embedding", "index", "settings"},
    "mcp_server": {"service", "settings"},
    "cli": {"service", "publishing", "doctor", "settings", "mcp_server"},
}
# Which rooms may reach the world, and how..
ROOMS_WITH_DOOR = {
    "sqlite3": {"index", "publishing"},
    "httpx": {"embedding"},
    "mcp": {"mcp_server"},
    "uvicorn": {"mcp_server"},
    "rich": {"cli"},
    "print": {"cli"},
    "subprocess": {"publishing"},
    "socket": {"mcp_server"},
    "os": {"index", "publishing", "mcp_server", "cli"},
    "environ": {"cli"},
    "open": {"index", "publishing", "settings"},
    "pathlib": {"settings", "index", "publishing", "service", "doctor", "mcp_server", "cli"},
}


def uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import, wherever it stands, and of every guarded word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield (
                    node.lineno,
                    f"{node.module}.{alias.name}" if node.module == "hermes_digup" else f"{node.module}",
                )
        elif isinstance(node, ast.Name) and node.id in ("print", "open"):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and node.attr == "environ":
            yield node.lineno, "environ"


def faults(room: str, tree: ast.AST) -> list[str]:
    """What this code uses and its room may not."""
    found = []
    for line, name in uses(tree):
        top, *rest = name.split(".")
        if top == "hermes_digup":
            is_own = bool(rest) and rest[0] == room
            is_friend = len(rest) == 1 and rest[0] in LEAVES | ROOMS_USED_BY.get(room, set())
            allowed = is_own or is_friend
        else:
            allowed = room in ROOMS_WITH_DOOR.get(top, {room})
        if not allowed:
            found.append(f"line {line}: {room} may not use {name}")
    return found


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_a_room_uses_only_what_it_may(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")

    assert faults(room, ast.parse(path.read_text("utf-8"))) == []


@pytest.mark.parametrize(
    ("room", "code"),
    [
        ("ranking", "import sqlite3"),
        ("ranking", "from hermes_digup.settings import load"),
        ("index", "from hermes_digup.ranking import search"),
        ("index", "import hermes_digup.service"),
        ("service", "from hermes_digup.index.database import Database"),
        ("service", "from hermes_digup import publishing"),
        ("service", "def late():\n    import httpx"),
        ("mcp_server", "print('on the wire')"),
        ("embedding", "import os\nos.environ['KEY']"),
        ("settings", "from hermes_digup.service import Service"),
        ("errors", "from hermes_digup.settings import load"),
    ],
)
def test_a_planted_violation_is_caught(room: str, code: str) -> None:
    assert faults(room, ast.parse(code))


def test_every_room_is_known() -> None:
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")}

    assert rooms <= {*ROOMS_USED_BY, *LEAVES, "ranking", "settings", "__init__"}

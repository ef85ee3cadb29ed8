"""Draws docs/pictures/*.svg: what a terminal shows of the demo, of its doctor and of a search.

python docs/pictures.py    runs all three and draws them anew (make pictures)

What differs from run to run is fixed, so that only another behaviour gives another picture: `.ci/run` draws
them again and fails if one has changed. Processors differ in the third decimal of `meaning`: the questions
are such that this changes neither a digit that is shown nor which files reach 2.0.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
COLUMNS = 96
CUT = "⋮"
VARYING = (
    (re.escape(f"{ROOT}/.demo"), "/…"),
    (r"(127\.0\.0\.1:|\bport )\d+", r"\g<1>8000"),
    (r"\bid (\w+:c?\d+):[0-9a-f]{10}\b", r"id \1:201bc6dac4"),
    (r"\b\d+ ms\b", "912 ms"),
    (r"\b[\d.]+ [GT]B free\b", "74.2 GB free"),
    (r"(?<!\.)\b(less than a minute|\d+ \w+) ago\b", "6 minutes ago"),
    (r"\b[\d.]+ hours ago", "0.1 hours ago"),
    (r"\b\d{4}-\d\d-\d\dT[\d:]{8}Z", "2026-06-01T09:00:00Z"),
)
# A row of doctor's table. It was folded around values of any width: unfold it first, fold it again after.
ROW = re.compile(
    r"^( {10}(?:OK|WARN|FAIL|SKIP) +)(\S+(?: \S+)*)(?:  +|\n {16})(?!fix: )(\S.*(?:\n {16,}(?!fix: )\S.*)*)",
    re.MULTILINE,
)
ROW_ENDS, BESIDE, BELOW = 80, 40, 16  # as in playbooks/templates/doctor.txt.j2, eight blanks to the right
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{
  font: {char_height}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace
}}
{styles}
</style>
{chrome}
<g class="{unique_id}-matrix" transform="translate({terminal_x}, {terminal_y})">
{backgrounds}{matrix}
</g>
</svg>
"""


@dataclass(frozen=True)
class Picture:
    """A command as it is typed, and the parts of its output that are shown: from a line until another."""

    name: str
    typed: str
    command: tuple[str, ...]
    parts: tuple[tuple[str, str], ...]
    code: int = 0


PICTURES = (
    Picture(
        "demo",
        "make demo",
        ("make", "demo"),
        (
            (r" {8}macbook ", r"\s*$"),
            (r"--- By meaning", r"--- In another"),
            (r"--- The model server is stopped", r"--- All checks"),
            (r"All of it worked", r"To do the same"),
        ),
    ),
    # The demo stops its model server when it ends.
    Picture(
        "doctor",
        "ansible-playbook -i inventories/demo playbooks/doctor.yml",
        (".venv/bin/ansible-playbook", "-i", "inventories/demo", "playbooks/doctor.yml"),
        ((r" {8}mac-mini$", r"TASK "),),
        code=2,
    ),
    Picture(
        "search",
        'make ask Q="what did Brightwater charge for the booking page"',
        ("make", "ask", "Q=what did Brightwater charge for the booking page"),
        ((r"1\. ", r"make|$"),),
    ),
)


def seen(picture: Picture) -> str:
    """What a terminal gets from the command, passed on as it comes. Raises: SystemExit if that fails."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "ANSIBLE_NOCOLOR": "1"}
    for name in ("NO_COLOR", "MAKEFLAGS", "MAKELEVEL"):
        environ.pop(name, None)
    with subprocess.Popen(  # noqa: S603  # one of the three above
        picture.command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        told = b"".join(_until_closed(ours))
    if process.returncode != picture.code:
        raise SystemExit(f"It ended with {process.returncode}, so it is not drawn: {picture.typed}")
    return told.decode().replace("\r\n", "\n")


def _until_closed(terminal: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(terminal, 65536):
            sys.stdout.buffer.write(chunk)
            sys.stdout.flush()
            yield chunk
    except OSError:
        pass  # Linux says so when the other end is closed
    finally:
        os.close(terminal)


def normalised(told: str) -> str:
    """The same text for every run: places, times, sizes and speeds of this one are fixed."""
    told = ROW.sub(lambda row: f"{row[1]}{row[2]}  {' '.join(row[3].split())}", told)
    for varying, fixed in VARYING:
        told = re.sub(varying, fixed, told)
    return ROW.sub(_folded, told)


def _folded(row: re.Match[str]) -> str:
    head, detail = f"{row[1]}{row[2]}".ljust(BESIDE - 2), row[3]
    beside = len(head) < BESIDE and max(map(len, detail.split())) <= ROW_ENDS - BESIDE
    left = BESIDE if beside else BELOW
    lines = textwrap.wrap(detail, ROW_ENDS - left, break_long_words=False, break_on_hyphens=False)
    below = "\n" + " " * left
    return (f"{head}  " if beside else head.rstrip() + below) + below.join(lines)


def excerpt(told: str, parts: tuple[tuple[str, str], ...]) -> list[Text]:
    """The lines that are shown.

    Raises: SystemExit if a part is not there, or the terminal would break one of its lines.
    """
    lines = list(Text.from_ansi(told).split("\n", allow_blank=True))
    shown: list[Text] = []
    end = 0
    for first, until in parts:
        begin = _find(first, lines, end)
        if begin == len(lines):
            raise SystemExit(f"No line begins with {first!r}: mend PICTURES in docs/pictures.py.")
        shown += [Text(CUT)] if begin > end else []
        end = _find(until, lines, begin + 1)
        shown += lines[begin:end]
        while not shown[-1].plain.strip():
            shown.pop()
    for line in shown:
        if len(line.plain) > COLUMNS:
            raise SystemExit(f"Longer than the picture is wide, so show another: {line.plain}")
    return shown


def _find(beginning: str, lines: list[Text], start: int) -> int:
    """Number of the first line that begins so, from `start` on; how many lines there are if none does."""
    return next((i for i in range(start, len(lines)) if re.match(beginning, lines[i].plain)), len(lines))


def drawn(picture: Picture, told: str) -> str:
    """The picture as SVG: dark on any page, one line of text after another, with the reader's own font."""
    console = Console(record=True, width=COLUMNS, force_terminal=True, color_system="256", file=io.StringIO())
    for line in [Text(f"$ {picture.typed}"), *excerpt(told, picture.parts)]:
        console.print(line, soft_wrap=True)
    svg = console.export_svg(title="", code_format=SVG, theme=SVG_EXPORT_THEME, unique_id=picture.name)
    svg = re.sub(r' clip-path="[^"]*"|<text [^>]*>\n</text>', "", svg)
    return re.sub(r" +$", "", svg.replace("</text><text", "</text>\n<text"), flags=re.MULTILINE)


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for picture in PICTURES:
        svg = drawn(picture, normalised(seen(picture)))
        (FOLDER / f"{picture.name}.svg").write_text(svg, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Draws journeys.svg from journeys.txt: a column for each machine, a row for each step, an arrow on the way.

python docs/draw.py            writes the drawing anew
python docs/draw.py --check    fails if it is not up to date
"""

from __future__ import annotations

import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

SOURCE = Path(__file__).with_name("journeys.txt")
DRAWING = SOURCE.with_suffix(".svg")
COLUMN, GAP, MARGIN, LINE = 270, 50, 20, 18
LETTERS = 36  # that fit into a box
WIDTH = 2 * MARGIN + 3 * COLUMN + 2 * GAP
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">
<title id="title">{title}</title>
<style>
  text {{ font-family: Helvetica, Arial, "DejaVu Sans", sans-serif; font-size: 14px; text-anchor: middle }}
  text {{ fill: #1f2328 }}
  .name {{ font-size: 17px; font-weight: 600 }}
  .soft {{ fill: #57606a }}
  .journey {{ font-size: 15px; font-weight: 600; fill: #0a53a8; text-anchor: start }}
  .page {{ fill: #ffffff }}
  .box {{ fill: #f6f8fa; stroke: #8c959f }}
  .lane {{ stroke: #8c959f; stroke-dasharray: 2 5 }}
  .arrow {{ stroke: #0a53a8; stroke-width: 2; fill: none }}
  .point {{ fill: #0a53a8 }}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e6edf3 }} .soft {{ fill: #9198a1 }} .journey {{ fill: #79b8ff }}
    .page {{ fill: #0d1117 }} .box {{ fill: #161b22; stroke: #6e7681 }} .lane {{ stroke: #6e7681 }}
    .arrow {{ stroke: #79b8ff }} .point {{ fill: #79b8ff }}
  }}
</style>
<rect class="page" width="{width}" height="{height}" rx="10"/>"""


@dataclass(slots=True)
class Drawing:
    """What is drawn so far: lanes go below everything else, so parts are kept apart until the end."""

    parts: list[str] = field(default_factory=list)
    middles: dict[str, int] = field(default_factory=dict)
    y: int = MARGIN

    def machine(self, name: str, title: str, what: str) -> None:
        x = MARGIN + len(self.middles) * (COLUMN + GAP) + COLUMN // 2
        self.middles[name] = x
        self._text(x, MARGIN + 20, title, "name")
        for number, line in enumerate(textwrap.wrap(what, LETTERS)):
            self._text(x, MARGIN + 42 + number * LINE, line, "soft")
        self.y = MARGIN + 90

    def journey(self, title: str) -> None:
        self.y += 14
        self.parts.append(
            f'<rect class="page" x="{MARGIN}" y="{self.y - 16}" width="{len(title) * 8}" height="22"/>'
        )
        self._text(MARGIN, self.y, title, "journey")
        self.y += 20

    def step(self, name: str, what: str) -> None:
        lines = textwrap.wrap(what, LETTERS)
        height = len(lines) * LINE + 14
        left = self.middles[name] - COLUMN // 2
        self.parts.append(
            f'<rect class="box" x="{left}" y="{self.y}" width="{COLUMN}" height="{height}" rx="6"/>'
        )
        for number, line in enumerate(lines):
            self._text(self.middles[name], self.y + 20 + number * LINE, line)
        self.y += height + 14

    def sent(self, one: str, other: str, what: str) -> None:
        start, end = self.middles[one], self.middles[other]
        back = 8 if end > start else -8
        self.y += 8
        width = len(what) * 7 + 8
        left = (start + end - width) // 2
        self.parts.append(f'<rect class="page" x="{left}" y="{self.y - 14}" width="{width}" height="20"/>')
        self._text((start + end) // 2, self.y, what, "soft")
        self.y += 14
        self.parts.append(f'<path class="arrow" d="M{start} {self.y}H{end - back}"/>')
        self.parts.append(f'<path class="point" d="M{end} {self.y}l{-back - back // 2} -6v12z"/>')
        self.y += 16

    def whole(self, title: str) -> str:
        lanes = [f'<path class="lane" d="M{x} {MARGIN + 80}V{self.y}"/>' for x in self.middles.values()]
        head = HEAD.format(width=WIDTH, height=self.y + MARGIN, title=escape(title))
        return "\n".join([head, *lanes, *self.parts, "</svg>\n"])

    def _text(self, x: int, y: int, words: str, kind: str = "") -> None:
        of_kind = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x}" y="{y}"{of_kind}>{escape(words)}</text>')


def drawn(source: str) -> str:
    """The drawing that a source describes. Raises: ValueError naming the line that means nothing."""
    drawing, titles = Drawing(), []
    for line in source.splitlines():
        if not line or line.startswith("#"):
            continue
        if machine := re.fullmatch(r"machine (\w+) \| (.+) \| (.+)", line):
            drawing.machine(*machine.groups())
        elif journey := re.fullmatch(r"journey (.+)", line):
            titles.append(journey[1])
            drawing.journey(journey[1])
        elif sent := re.fullmatch(r"(\w+) -> (\w+): (.+)", line):
            drawing.sent(*sent.groups())
        elif step := re.fullmatch(r"(\w+): (.+)", line):
            drawing.step(*step.groups())
        else:
            raise ValueError(f"{SOURCE.name} has a line that means nothing: {line}")
    return drawing.whole("; ".join(titles))


def main() -> int:
    new = drawn(SOURCE.read_text("utf-8"))
    if "--check" in sys.argv:
        fresh = DRAWING.read_text("utf-8") == new
        if not fresh:
            print(f"{DRAWING.name} is not what {SOURCE.name} says. Run: make docs")
        return int(not fresh)
    DRAWING.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

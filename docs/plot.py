"""Draws performance.svg from a table of performance.md: a bar for each figure, as long as the figure is.

python docs/plot.py            writes the plot anew
python docs/plot.py --check    fails if it is not up to date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

SOURCE = Path(__file__).with_name("performance.md")
PLOT = SOURCE.with_suffix(".svg")
FIRST_CELL = "| searched for "
LEFT, LENGTH, RIGHT, BAR, GAP, TOP = 170, 560, 70, 13, 14, 74
STEP = 20  # between two lines of the scale
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">
<title id="title">{title}</title>
<style>
  text {{ font-family: Helvetica, Arial, "DejaVu Sans", sans-serif; font-size: 13px; fill: #1f2328 }}
  .left {{ text-anchor: end }} .middle {{ text-anchor: middle }}
  .title {{ font-size: 15px; font-weight: 600 }} .soft {{ fill: #57606a; font-size: 12px }}
  .page {{ fill: #ffffff }} .line {{ stroke: #d0d7de }}
  .bar0 {{ fill: #0a53a8 }} .bar1 {{ fill: #79b8ff }} .bar2 {{ fill: #8c959f }} .bar3 {{ fill: #d0d7de }}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e6edf3 }} .soft {{ fill: #9198a1 }} .page {{ fill: #0d1117 }} .line {{ stroke: #30363d }}
    .bar0 {{ fill: #79b8ff }} .bar1 {{ fill: #2f6fb5 }} .bar2 {{ fill: #9198a1 }} .bar3 {{ fill: #484f58 }}
  }}
</style>
<rect class="page" width="{width}" height="{height}" rx="10"/>"""


def table(text: str) -> list[list[str]]:
    """The cells of the table to draw, its heading first."""
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(FIRST_CELL))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def drawn(text: str) -> str:
    """The plot of a page's table."""
    (_, *names), *rows = table(text)
    title = re.findall(r"^### (.+)$", text.split(FIRST_CELL)[0], re.MULTILINE)[-1]
    longest = max(float(cell) for _, *cells in rows for cell in cells)
    scale = LENGTH / longest
    y, parts = TOP, []
    for label, *cells in rows:
        middle = y + len(cells) * BAR // 2 + 4
        parts.append(f'<text class="left" x="{LEFT - 10}" y="{middle}">{escape(label)}</text>')
        for number, cell in enumerate(cells):
            width = round(float(cell) * scale)
            parts.append(f'<rect class="bar{number}" x="{LEFT}" y="{y}" width="{width}" height="{BAR - 1}"/>')
            parts.append(f'<text class="soft" x="{LEFT + width + 5}" y="{y + 10}">{cell}</text>')
            y += BAR
        y += GAP
    lines = []
    for value in range(0, int(longest) + 1, STEP):
        x = LEFT + round(value * scale)
        lines.append(f'<path class="line" d="M{x} {TOP - 8}V{y}"/>')
        lines.append(f'<text class="soft middle" x="{x}" y="{y + 14}">{value}</text>')
    head = HEAD.format(width=LEFT + LENGTH + RIGHT, height=y + 30, title=escape(title))
    legend = [f'<text class="title" x="20" y="28">{escape(title)}</text>']
    x = 20
    for number, name in enumerate(names):
        legend.append(f'<rect class="bar{number}" x="{x}" y="44" width="12" height="12"/>')
        legend.append(f'<text x="{x + 18}" y="55">{escape(name)}</text>')
        x += 40 + len(name) * 7
    return "\n".join([head, *legend, *lines, *parts, "</svg>\n"])


def main() -> int:
    new = drawn(SOURCE.read_text("utf-8"))
    if "--check" in sys.argv:
        fresh = PLOT.is_file() and PLOT.read_text("utf-8") == new
        if not fresh:
            print(f"{PLOT.name} is not what {SOURCE.name} says. Run: make docs")
        return int(not fresh)
    PLOT.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

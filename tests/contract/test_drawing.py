"""The README's drawing is what its text says."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_drawing_is_what_its_text_says() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "draw.py", "--check"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_line_fits_into_the_drawing_in_light_and_dark() -> None:
    text = (DOCS / "journeys.svg").read_text("utf-8")
    svg = ET.fromstring(text)
    _, _, width, height = map(int, svg.attrib["viewBox"].split())

    assert "prefers-color-scheme: dark" in text
    for each in svg.iter("{http://www.w3.org/2000/svg}text"):
        half = len(each.text or "") * 4
        assert 0 < int(each.attrib["y"]) < height
        assert int(each.attrib["x"]) + half < width

"""The drawings are what their texts say."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("script", ["draw.py", "plot.py"])
def test_a_drawing_is_what_its_text_says(script: str) -> None:
    done = subprocess.run(
        [sys.executable, DOCS / script, "--check"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("drawing", ["journeys.svg", "performance.svg"])
def test_every_line_fits_into_a_drawing_in_light_and_dark(drawing: str) -> None:
    text = (DOCS / drawing).read_text("utf-8")
    svg = ET.fromstring(text)
    _, _, width, height = map(int, svg.attrib["viewBox"].split())

    assert "prefers-color-scheme: dark" in text
    for each in svg.iter("{http://www.w3.org/2000/svg}text"):
        half = len(each.text or "") * 4
        assert 0 < int(each.attrib["y"]) < height
        assert int(each.attrib["x"]) + half < width

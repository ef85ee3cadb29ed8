"""The pictures of terminals: each run gives the same ones, no machine is named, the README shows all."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from docs import pictures

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
ROWS = """
        mac-mini
          SKIP  address for the agents
          OK    file for the agents
                {place}/.demo/mac-mini/.config/embedding-server.env 0600

        raspberrypi
          OK    MCP server              all tools after 7 ms
          OK    query vectors, macbook, code
                {age} ago
          FAIL  model server            The model server refuses connections
                                        at (http://127.0.0.1:{port})
                fix: Wake that host.

        3 ok, 0 warned, 1 failed, 0 skipped
"""


def test_rows_of_any_width_are_folded_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "VARYING", [("(/p|/a long/way)/.demo", "/…"), *pictures.VARYING[1:]])
    here = ROWS.format(place="/p", age="less than a minute", port=8000)
    there = (
        ROWS.format(place="/a long/way", age="17 hours", port=33081)
        .replace(" 7 ms", "\n" + " " * 40 + "12345 ms")
        .replace(" 0600", "\n" + " " * 16 + "0600")
    )
    assert pictures.normalised(here) == pictures.normalised(there)
    assert "\n" + " " * 16 + "fix: Wake that host.\n\n" in pictures.normalised(there)
    assert "  SKIP  address for the agents\n" in pictures.normalised(there)


def test_a_part_that_is_no_longer_printed_is_a_fault() -> None:
    told = "one\ntwo\nthree\nfour"
    assert [line.plain for line in pictures.excerpt(told, (("one", "two"), ("four", "five")))] == [
        "one",
        "⋮",
        "four",
    ]
    with pytest.raises(SystemExit, match="six"):
        pictures.excerpt(told, (("six", "five"),))


def test_a_line_that_the_terminal_would_break_is_not_shown() -> None:
    fits = "one " * (pictures.COLUMNS // 4)
    assert [line.plain for line in pictures.excerpt(fits, (("one", "two"),))] == [fits]
    with pytest.raises(SystemExit, match="so show another: one"):
        pictures.excerpt(f"{fits}!", (("one", "two"),))


def test_the_readme_shows_every_picture_and_says_it_in_words() -> None:
    shown = dict(
        re.findall(r"!\[([^]]{60,})\]\((docs/pictures/\S+)\)", (ROOT / "README.md").read_text("utf-8"))
    )
    assert sorted(shown.values()) == [str(path.relative_to(ROOT)) for path in PICTURES]
    assert {path.stem for path in PICTURES} == {picture.name for picture in pictures.PICTURES}


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_fits_and_tells_nothing_of_the_machine_that_drew_it(path: Path) -> None:
    text = path.read_text("utf-8")
    width, height = map(float, ET.fromstring(text).attrib["viewBox"].split()[2:])
    for x, y, length in re.findall(r'<text [^>]*x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"', text):
        assert float(x) + float(length) < width
        assert float(y) < height
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg|127\.0\.0\.1:8000)|@import|url\(", text) == []
    assert re.findall(r"/(?:home|root|tmp|work|Users)\b", text) == []

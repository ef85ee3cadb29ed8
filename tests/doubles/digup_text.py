"""What DigUp makes of texts before it stores them: pieces, stretches, excerpts, keyword text.

Written again here and not taken from the program, so that the two can be held against each other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
TRIMMED = "\t \xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200C)))
DEFINING = set(
    [
        "def",
        "func",
        "fn",
        "fun",
        "function",
        "class",
        "struct",
        "enum",
        "protocol",
        "interface",
        "trait",
        "type",
        "typealias",
        "actor",
        "extension",
        "impl",
        "module",
        "namespace",
        "object",
        "record",
        "macro",
        "union",
        "mod",
        "sub",
        "@interface",
        "@implementation",
        "@protocol",
        "#define",
        "function*",
    ]
)
NO_FIRST_LINE = (
    "//",
    "#",
    "/*",
    "*",
    "--",
    '"""',
    "'''",
    "import ",
    "from ",
    "using ",
    "package ",
    "}",
    ")",
    "]",
)
DROPPED = {0xAD, 0x61C, 0x640, 0x670, 0xFEFF}.union(
    range(0x200C, 0x2010),
    range(0x202A, 0x202F),
    range(0x2060, 0x2065),
    range(0x2066, 0x206A),
    range(0x64B, 0x660),
)
CHANGED = dict.fromkeys(DROPPED, "") | dict.fromkeys((0x622, 0x623, 0x625, 0x671), "\u0627") | {0x200B: " "}
PIECE, OVERLAP, STRETCH, STRETCH_LINE = 1800, 200, 1800, 4000


def normalized(text: str) -> str:
    """The form in which words are kept and compared."""
    return unicodedata.normalize("NFKC", text).translate(CHANGED)


def keyword_text(text: str) -> tuple[str, str | None]:
    """Body, and the text as written when normalising changed more than its composition."""
    body = normalized(text)
    same = unicodedata.normalize("NFC", body) == unicodedata.normalize("NFC", text)
    return body, None if same else text


def has_words(text: str) -> bool:
    """Whether a text is worth a vector: not when it is mostly digits and symbols."""
    kinds = [unicodedata.category(char)[0] for char in re.sub(f"[{SPACES}]", "", text)]
    letters = sum(kind in "LM" for kind in kinds)
    return letters > 0 and letters * 4 >= len(kinds) - letters


def characters(text: str) -> Iterator[str]:
    """What a reader sees as one character each (well enough for the texts of tests and demo)."""
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or not _joins(text[place - 1], text[place]):
            yield text[start:place]
            start = place


def _joins(before: str, char: str) -> bool:
    marks = unicodedata.category(char)[0] == "M" or char in "\u200c\u200d" or before + char == "\r\n"
    return marks or before == "\u200d" or (before in "\u094d\u09cd" and unicodedata.category(char) == "Lo")


def excerpt(text: str, limit: int = 240) -> str:
    """One line that shows what a text is."""
    return _cut(re.sub(f"[{SPACES}]+", " ", text).strip(TRIMMED), limit)


def code_excerpt(text: str) -> str:
    """The line of code that says best what a stretch is."""
    lines = [line for line in (line.strip(TRIMMED) for line in text.splitlines()) if line]
    defining = (line for line in lines if DEFINING.intersection(line.split()[:4]))
    telling = (line for line in lines if not line.startswith(NO_FIRST_LINE))
    return _cut(next(defining, next(telling, lines[0] if lines else "")), 160)


def _cut(line: str, limit: int) -> str:
    parts = list(characters(line))
    return "".join(parts[:limit]) + "…" if len(parts) > limit else line


def pieces(text: str) -> list[str]:
    """A document in overlapping pieces."""
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t\xa0]+", " ", text)).strip()
    found, start = [], 0
    while start < len(text):
        end = min(start + PIECE, len(text))
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space if space > start + PIECE // 2 else end
        found.append(text[start:end].strip())
        if end == len(text):
            break
        next_word = re.compile(r"\s").search(text, end - OVERLAP, end)
        start = next_word.end() if next_word else end
    return [piece for piece in found if piece]


def stretches(text: str) -> list[tuple[int, int, str]]:
    """Source code in stretches of whole lines: first line, last line (from 1), text."""
    lines = [line[:STRETCH_LINE] for line in text.rstrip("\n").split("\n")]
    found, first = [], 0
    while first < len(lines):
        end, size = first + 1, len(lines[first])
        while end < len(lines) and size + 1 + len(lines[end]) <= STRETCH:
            size += 1 + len(lines[end])
            end += 1
        following = end
        if end < len(lines):
            blocks = [place for place in range(first + 1, end + 1) if not lines[place - 1].strip()]
            if blocks and blocks[-1] - first > (end - first) // 2:
                end = following = blocks[-1]
            else:
                following = max(first + 1, end - 2)
        found.append((first + 1, end, "\n".join(lines[first:end])))
        first = following
    return [stretch for stretch in found if stretch[2].strip()]


def cell_groups(cells: list[str]) -> list[tuple[int, int, str]]:
    """A notebook in groups of whole cells: first cell, last cell (from 1), text."""
    found: list[tuple[int, int, str]] = []
    for number, cell in enumerate(cells, 1):
        if found and len(found[-1][2]) + 2 + len(cell) <= STRETCH:
            first, _, text = found[-1]
            found[-1] = (first, number, f"{text}\n\n{cell}")
        else:
            found.append((number, number, cell))
    return found

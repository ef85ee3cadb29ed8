"""From a file's passages to one text to read: overlaps merged, each place named once.

DigUp cuts texts into pieces that share their edges; a reader wants each word once. Pure.

Source of the overlaps: a piece of a document starts 200 characters before the former one was cut, moved
forward to white space; a stretch of code may repeat the last two lines of the one before; a page may have two
segments.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hermes_digup.records import Passage

OVERLAP_CHARACTERS = 200
OVERLAP_LINES = 2
PAGES = frozenset({"page", "page_image"})
PICTURE_ONLY = "no text, a scanned picture"


@dataclass(frozen=True, slots=True)
class Part:
    """What stands in one place: a page, a piece, a stretch.

    `text` is all of it; `rest` what it adds to the part before, joined to that by `glue`.
    """

    first: Passage
    last: Passage
    text: str
    rest: str
    glue: str


def parts(passages: Sequence[Passage]) -> list[Part]:
    """The passages of one file, in their order, as parts without repetition.

    Segments of one page become one part. Passages of pictures, sound and film have no text and give none,
    except pages, whose place in the file a reader must not miss.
    """
    result: list[Part] = []
    before: Passage | None = None
    for group in _groups(passages):
        text = (
            _page_text(group) if group[0].kind in PAGES else unicodedata.normalize("NFC", group[0].text or "")
        )
        if not text and group[0].kind not in PAGES:
            continue
        rest, glue = _joined(before, group[0], text) if before is not None else (text, "")
        result.append(Part(group[0], group[-1], text, rest, glue))
        before = group[0]
    return result


def read_through(passages: Sequence[Passage]) -> str:
    """The whole text of a file: parts joined, pages under a line that names them."""
    pieces: list[str] = []
    for run in _runs(parts(passages)):
        part = run[0]
        if part.first.kind not in PAGES:
            pieces.append(part.glue + part.rest)
            continue
        separator = "\n\n" if pieces else ""
        pieces.append(f"{separator}[{_page_name(run)}]" + (f"\n{part.text}" if part.text else ""))
    return "".join(pieces)


def merged(chosen: Iterable[Part]) -> str:
    """Neighbouring parts as one text, the first of them whole; several pages under their names."""
    pieces: list[str] = []
    several = list(chosen)
    for part in several:
        if part.first.kind in PAGES and len(several) > 1:
            pieces.append(("\n\n" if pieces else "") + f"[{_page_name([part])}]\n{part.text}".rstrip("\n"))
        else:
            pieces.append(part.glue + part.rest if pieces else part.text)
    return "".join(pieces)


def _groups(passages: Sequence[Passage]) -> list[list[Passage]]:
    """Segments of the same page together; everything else alone."""
    groups: list[list[Passage]] = []
    for passage in passages:
        last = groups[-1][-1] if groups else None
        if last is not None and passage.kind in PAGES and last.kind in PAGES and passage.loc == last.loc:
            groups[-1].append(passage)
        else:
            groups.append([passage])
    return groups


def _page_text(group: Sequence[Passage]) -> str:
    """The texts of one page's segments; one that another holds already is not repeated."""
    texts: list[str] = []
    for passage in sorted(group, key=lambda each: -len(each.text or "")):
        text = unicodedata.normalize("NFC", passage.text or "").strip()
        if text and not any(text in other for other in texts):
            texts.append(text)
    return "\n".join(texts)


def _joined(before: Passage, here: Passage, text: str) -> tuple[str, str]:
    """This passage's text without what the one before ended with, and what to put between the two."""
    former = unicodedata.normalize("NFC", before.text or "")
    if here.kind == "chunk" and before.kind == "chunk":
        return _after_characters(former, text)
    if here.kind == "lines" and before.kind == "lines":
        return _after_lines(former, text, _shared_lines(before, here)), "\n"
    if here.kind == "cells" and before.kind == "cells":
        if before.loc_end is not None and before.loc_end == here.loc:
            return _after_lines(former, text, OVERLAP_LINES), "\n"
        return text, "\n\n"
    return text, "\n\n"


def _after_characters(former: str, text: str) -> tuple[str, str]:
    """Cuts the longest beginning, at most 200 characters, that the former piece ended with from a word on.

    Marks and joiners can make one character of several scalars, so the window is taken four times as wide.
    """
    begin = len(former) - min(len(former), len(text), OVERLAP_CHARACTERS * 4)
    start = former.find(text[:1], begin) if text else -1
    while start >= 0:
        length = len(former) - start
        at_a_word = start == 0 or former[start - 1].isspace()
        if at_a_word and former.startswith(text[:length], start):
            rest = text[length:]
            return rest, "" if not rest or rest[0].isspace() else " "
        start = former.find(text[:1], start + 1)
    return text, "\n"


def _shared_lines(before: Passage, here: Passage) -> int:
    if before.loc_end is None or here.loc is None:
        return 0
    return max(0, int(before.loc_end) - int(here.loc) + 1)


def _after_lines(former: str, text: str, at_most: int) -> str:
    """The text without its first lines when they are, one by one, the last ones of the former stretch."""
    ended, begins = former.split("\n"), text.split("\n")
    for count in range(min(at_most, len(ended), len(begins)), 0, -1):
        if ended[-count:] == begins[:count]:
            return "\n".join(begins[count:])
    return text


def _runs(all_parts: Sequence[Part]) -> list[list[Part]]:
    """Pages without text that follow each other together; everything else alone."""
    runs: list[list[Part]] = []
    for part in all_parts:
        empty_page = part.first.kind in PAGES and not part.text
        if runs and empty_page and runs[-1][-1].first.kind in PAGES and not runs[-1][-1].text:
            runs[-1].append(part)
        else:
            runs.append([part])
    return runs


def _page_name(run: Sequence[Part]) -> str:
    first, last = int(run[0].first.loc or 0), int(run[-1].first.loc or 0)
    name = f"page {first}" if first == last else f"pages {first} to {last}"
    return name if run[0].text else f"{name}: {PICTURE_ONLY}"

"""Marking the words of a query in a text as written, and cutting the stretch that shows them.

The text index marks words in its own, normalised text; where DigUp kept the text as written, this marks them
there.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import regex

from hermes_digup.ranking.text import (
    ELLIPSIS,
    characters,
    collapsed,
    is_prefix_script,
    is_white_space,
    is_word_character,
    lowercased,
    normalized,
)

MARK: Final = "«"
_MARK_END: Final = "»"
MOST_MATCHES: Final = 500
SNIPPET_WORDS: Final = 12

_EXTENDING: Final = regex.compile(r"\p{Grapheme_Extend}")
_ANY_EXTENDING: Final = r"\p{Grapheme_Extend}*+"


class Match(NamedTuple):
    """A stretch of characters, from `start` up to but not including `end`."""

    start: int
    end: int


class MarkedText:
    """A text made ready for finding words in it without regard to case and accents."""

    def __init__(self, text: str) -> None:
        self.characters: list[str] = characters(text)
        self._whose: list[int] = []  # for each folded scalar, its character
        self._inside: list[
            bool
        ] = []  # whether a folded scalar continues the expansion of one scalar, as in ß = ss
        folded: list[str] = []
        for place, character in enumerate(self.characters):
            for scalar in lowercased(normalized(character)):
                expansion = _folded(scalar)
                folded.append(expansion)
                self._whose += [place] * len(expansion)
                self._inside += [False] + [True] * (len(expansion) - 1)
        self._folded = "".join(folded)

    def matches(self, word: str) -> list[Match]:
        """Where a word begins (and, unless its script glues endings on, ends) as a word. At most 500."""
        needle = lowercased(normalized(word))
        glued = is_prefix_script(needle)
        kept: list[Match] = []
        for hit in self._raw_matches(needle):
            match = self._as_word(hit, glued=glued)
            if match and not (kept and match.start < kept[-1].end):
                kept.append(match)
                if len(kept) == MOST_MATCHES:
                    break
        return kept

    def _raw_matches(self, needle: str) -> Iterator[Match]:
        letters = "".join(_folded(scalar) for scalar in needle)
        if not letters:
            return
        sought = letters[0] + _EXTENDING.sub("", letters[1:])
        pattern = regex.compile(_ANY_EXTENDING.join(map(regex.escape, sought)))
        place = 0
        while found := pattern.search(self._folded, place):
            start, end = found.span()
            if self._inside[start] or self._ends_inside(end):
                place = start + 1
                continue
            yield Match(self._whose[start], self._whose[end - 1] + 1)
            place = end

    def _ends_inside(self, end: int) -> bool:
        """Whether a match would end within one scalar's expansion; accents that follow may be left out."""
        while end < len(self._inside) and self._inside[end]:
            if not _EXTENDING.match(self._folded, end):
                return True
            end += 1
        return False

    def _as_word(self, hit: Match, *, glued: bool) -> Match | None:
        start, end = hit
        if start > 0 and is_word_character(self.characters[start - 1]):
            return None
        while end < len(self.characters) and is_word_character(self.characters[end]):
            if not glued:
                return None
            end += 1
        return Match(start, end)


def matches(word: str, text: str) -> list[tuple[int, int, str]]:
    """Each match of a word: its first scalar, the scalar after its last, and its text."""
    marked = MarkedText(text)
    offsets = [0]
    for character in marked.characters:
        offsets.append(offsets[-1] + len(character))
    return [
        (offsets[m.start], offsets[m.end], text[offsets[m.start] : offsets[m.end]])
        for m in marked.matches(word)
    ]


def snippet(text: str, words: Sequence[str], length: int = SNIPPET_WORDS) -> str | None:
    """About `length` words of a text around the first match, matches in « »; None without a match."""
    marked = MarkedText(text)
    found = sorted(match for word in words for match in marked.matches(word))
    if not found:
        return None
    start, spaces = _lead(marked.characters, found[0].start, length // 3)
    end = _tail(marked.characters, found[0].end, length - spaces)
    shown = (ELLIPSIS if start > 0 else "") + _with_marks(marked.characters, Match(start, end), found)
    return collapsed(shown + (ELLIPSIS if end < len(marked.characters) else ""))


def _lead(text: list[str], place: int, most: int) -> tuple[int, int]:
    """Where a snippet starts, and how many gaps between words lie before its first match."""
    spaces = 0
    while place > 0 and spaces < most:
        place -= 1
        if is_white_space(text[place]) and not is_white_space(text[place + 1]):
            spaces += 1
    if place > 0 or is_white_space(text[place]):
        place += 1
    return place, spaces


def _tail(text: list[str], place: int, most: int) -> int:
    spaces = 0
    while place < len(text) and spaces < most:
        if is_white_space(text[place]):
            spaces += 1
        place += 1
    return place


def _with_marks(text: list[str], shown: Match, found: list[Match]) -> str:
    parts: list[str] = []
    place = shown.start
    for match in found:
        if match.start >= place and match.end <= shown.end:
            parts += [*text[place : match.start], MARK, *text[match.start : match.end], _MARK_END]
            place = match.end
    return "".join(parts + text[place : shown.end])


def _folded(scalar: str) -> str:
    """A scalar without case, taken apart into base letters and accents."""
    if scalar.isascii():
        return scalar.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", scalar).casefold())

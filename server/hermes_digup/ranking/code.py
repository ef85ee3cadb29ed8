"""What is special about searching code: names, where a name is defined, and the line to open at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import regex

from hermes_digup.ranking.text import (
    ELLIPSIS,
    characters,
    composed,
    is_letter,
    is_number,
    is_upper_case,
    lowercased,
    split_words,
)
from hermes_digup.ranking.vocabulary import (
    BLANKS,
    BLANKS_AND_LINE_ENDS,
    COMMENT_STARTS,
    DEFINITION_WORDS,
    NOT_TELLING_STARTS,
    OPENING_WORDS,
    USE_WORDS,
)

SURE: Final = 2
LIKELY: Final = 1
SUMMARY_LENGTH: Final = 160

_NAME: Final = regex.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(?:(?:\.|::|->|#)[A-Za-z_$][A-Za-z0-9_$]*)*")
_LINE_END: Final = regex.compile(r"\r?\n")
_ASCII_WORD: Final = regex.compile(r"[a-z0-9]+")
_EXTENDING: Final = regex.compile(r"\p{Grapheme_Extend}")
_OPENING_PLACES: Final = 4


class Definition(NamedTuple):
    """The line on which a name seems to be defined, and how sure that is (2 sure, 1 likely)."""

    line: int
    strength: int


def identifier(text: str) -> list[str] | None:
    """The words of a name as code spells it; None when a query is ordinary words."""
    name = text.strip(BLANKS_AND_LINE_ENDS)
    name = name.removesuffix("()")
    if not _NAME.fullmatch(name):
        return None
    camel = any(c.isupper() for c in name[1:]) and any(c.islower() for c in name)
    if not camel and not any(c in "_.:#$" or c.isdigit() for c in name):
        return None
    words: list[str] = _ASCII_WORD.findall(name.lower())
    return words


def name_of(text: str) -> str:
    """The name to look for in lines, from a query that is one."""
    return text.strip(BLANKS_AND_LINE_ENDS).replace("()", "")


def definition(name: str, text: str, first: int) -> Definition | None:
    """The line that most likely defines a name; `first` is the number of the text's first line."""
    best: Definition | None = None
    for found in regex.finditer(regex.escape(name), text, regex.IGNORECASE):
        line_start, line = _line_around(text, found.start(), found.end())
        start, end = found.start() - line_start, found.end() - line_start
        strength = _strength(line, start, end) if _stands_alone(line, start, end) else 0
        if strength > (best.strength if best else 0):
            best = Definition(first + text.count("\n", 0, line_start), strength)
            if strength == SURE:
                return best
    return best


def first_line(words: Sequence[str], text: str, first: int) -> int | None:
    """The line to open at, of those with a word: one that opens a definition, else no comment, else any.

    `first` is the number of the text's first line; None when no line has a word.
    """
    sought = [characters(composed(lowercased(word))) for word in words]
    sought = [word for word in sought if len(word) >= 2]
    having = [
        (first + n, line) for n, line in enumerate(_lines(text)) if any(_has(line, word) for word in sought)
    ]
    for number, line in having:
        if _opens(line):
            return number
    for number, line in having:
        if not line.strip(BLANKS).startswith(COMMENT_STARTS):
            return number
    return having[0][0] if having else None


def summary(text: str) -> str:
    """One telling line of a stretch of code, as DigUp stores it for an excerpt."""
    lines = [line for line in (line.strip(BLANKS) for line in _lines(text)) if line]
    telling = next((line for line in lines if _opens(line)), None)
    if telling is None:
        telling = next((line for line in lines if not line.startswith(NOT_TELLING_STARTS)), (*lines, "")[0])
    seen = characters(telling)
    return telling if len(seen) <= SUMMARY_LENGTH else "".join(seen[:SUMMARY_LENGTH]) + ELLIPSIS


def _lines(text: str) -> list[str]:
    lines: list[str] = _LINE_END.split(text)
    return lines


def _opens(line: str) -> bool:
    return any(word in OPENING_WORDS for word in split_words(line)[:_OPENING_PLACES])


def _is_name_character(character: str) -> bool:
    return character in ("_", "$") or is_letter(character) or is_number(character)


def _line_around(text: str, start: int, end: int) -> tuple[int, str]:
    """The line that holds a stretch, without its line end, and where it starts."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    if line_end < 0:
        return line_start, text[line_start:]
    return line_start, text[line_start:line_end].removesuffix("\r")


def _stands_alone(line: str, start: int, end: int) -> bool:
    """Whether a name in a line is no part of a longer one."""
    before, after = line[:start], line[end : end + 1]
    if before and _is_name_character(_last(before)):
        return False
    return not (after and (_is_name_character(after) or _EXTENDING.match(after)))


def _last(text: str) -> str:
    return text[-1] if text[-1].isascii() else characters(text)[-1]


def _strength(line: str, start: int, end: int) -> int:
    before, after = line[:start].strip(BLANKS), line[end:].strip(BLANKS)
    last_word = (split_words(before) or [""])[-1]
    if last_word in DEFINITION_WORDS or (before.startswith("func (") and before.endswith(")")):
        return SURE
    if before.startswith(("- (", "+ (")):
        return SURE if not after or after.startswith((":", "{", ";")) else 0
    if after.startswith("(") and before and last_word not in USE_WORDS and _may_be_a_type(before):
        return LIKELY if line.strip(BLANKS).endswith(";") else SURE
    return 0


def _may_be_a_type(before: str) -> bool:
    if "->" in before or any(c in "=(,.!?" for c in before):
        return False
    last = _last(before)
    return last in "*&>_]" or is_letter(last) or is_number(last)


def _has(line: str, word: list[str]) -> bool:
    """Whether a word begins in a line: at its start, after no letter or number, or as a part in camelCase."""
    if line.isascii():
        return _has_in_ascii(line, "".join(word))
    own = characters(composed(line))
    lowered = characters(composed(lowercased(line)))
    size, place = len(word), 0
    while place + size <= len(lowered):
        if lowered[place : place + size] != word:
            place += 1
        elif _begins_word(own, place):
            return True
        else:
            place += size
    return False


def _has_in_ascii(line: str, word: str) -> bool:
    lowered = line.lower()
    place = lowered.find(word)
    while place >= 0:
        if place == 0 or not line[place - 1].isalnum() or line[place].isupper():
            return True
        place = lowered.find(word, place + len(word))
    return False


def _begins_word(own: list[str], place: int) -> bool:
    if place == 0:
        return True
    if place >= len(own):
        return False
    return not (is_letter(own[place - 1]) or is_number(own[place - 1])) or is_upper_case(own[place])

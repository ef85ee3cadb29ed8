"""Text as DigUp sees it: three notions of character, normalising, and sets of characters.

A *scalar* is one code point; a *character* is what a person sees as one (an extended grapheme cluster).
Which one a rule counts decides results, so every function here says it.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

import regex

from hermes_digup.ranking.vocabulary import (
    ALEF,
    ALEFS,
    BLANKS,
    DROPPED,
    NOT_YET_NUMBERS,
    WHITE_SPACE,
    ZERO_WIDTH_SPACE,
)

ELLIPSIS: Final = "…"

_CHARACTER: Final = regex.compile(r"(?s)\X")
_CONSONANT: Final = regex.compile(r"\p{InCB=Consonant}")
_CONJUNCT: Final = regex.compile(r"\p{InCB=Linker}\p{InCB=Extend}*\p{InCB=Consonant}")
_PREPENDED: Final = regex.compile(r"\p{GCB=Prepend}")
_WORD_RUN: Final = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_WORD_SCALAR: Final = regex.compile(r"[\p{L}\p{M}\p{N}]")
_LETTER_OR_MARK: Final = regex.compile(r"[\p{L}\p{M}]")
_SPACE_RUN: Final = regex.compile("[" + "".join(sorted(WHITE_SPACE)) + "]+")
_NOT_SPACE: Final = regex.compile("[^" + "".join(sorted(WHITE_SPACE)) + ZERO_WIDTH_SPACE + "]")
# Alphabetic also holds vowel signs and circled letters.
_ALPHABETIC: Final = regex.compile(r"\p{Alphabetic}")
_UPPERCASE: Final = regex.compile(r"\p{Uppercase}")
_PREFIX_SCRIPT: Final = regex.compile("[\u0900-\u0dff\u0600-\u06ff]")
_UNSPLIT: Final = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}\p{Javanese}\p{Balinese}\p{Tai_Tham}]"
)
_TRANSLATION: Final = str.maketrans(
    {ZERO_WIDTH_SPACE: " ", **dict.fromkeys(DROPPED, ""), **dict.fromkeys(ALEFS, ALEF)}
)


def characters(text: str) -> list[str]:
    """The user-perceived characters of a text; `\\r\\n`, a conjunct, a flag are one each."""
    if text.isascii() and "\r" not in text:
        return list(text)
    found: list[str] = _CHARACTER.findall(text)
    if _CONJUNCT.search(text) is None:
        return found
    return [part for character in found for part in _without_false_conjuncts(character)]


def _without_false_conjuncts(character: str) -> list[str]:
    """A character split before each consonant that joins nothing.

    `\\X` joins a virama with the consonant after it whatever stands before; by the standard, and in Swift,
    only a consonant can be joined to: `é` with a stray virama and a following ক are two characters.
    """
    starts, base = [0], character[0]
    for place, scalar in enumerate(character[1:], 1):
        if _CONSONANT.match(scalar):
            if not _CONSONANT.match(base) and not _PREPENDED.match(character[place - 1]):
                starts.append(place)
            base = scalar
    return [character[start:end] for start, end in zip(starts, [*starts[1:], len(character)], strict=True)]


def composed(text: str) -> str:
    """The form in which texts are compared: equal exactly when canonically equivalent."""
    return unicodedata.normalize("NFC", text)


def canonically_equal(one: str, other: str) -> bool:
    """Whether two texts differ at most in how their accents are spelled."""
    return composed(one) == composed(other)


def has_prefix(text: str, prefix: str) -> bool:
    """Whether a text begins with another by whole characters: `গান` is no prefix of `গানের`."""
    start = characters(composed(prefix))
    return characters(composed(text))[: len(start)] == start


def lowercased(text: str) -> str:
    """Lower case, scalar by scalar: no final sigma, no locale."""
    if text.isascii():
        return text.lower()
    return "".join([scalar.lower() for scalar in text])


def normalized(text: str) -> str:
    """A text as DigUp's text index keeps it: NFKC, without marks that only format, one kind of alef.

    The result is not composed again after dropping.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text).translate(_TRANSLATION)


def keyword_text(text: str) -> tuple[str, str | None]:
    """What the text index keeps: the normalised text, and the one as written when they really differ."""
    body = normalized(text)
    return body, None if canonically_equal(body, text) else text


def pieces(text: str) -> list[str]:
    """Runs of letters, marks and numbers of the normalised, lower-cased text."""
    found: list[str] = _WORD_RUN.findall(lowercased(normalized(text)))
    return found


def is_prefix_script(word: str) -> bool:
    """Whether a word's script (Indic, Arabic) glues endings on, so that it is sought as a prefix."""
    return _PREFIX_SCRIPT.search(word) is not None


def unsplit_script(text: str) -> bool:
    """Whether a text is in a script written without spaces, whose words are not found one by one."""
    return _UNSPLIT.search(text) is not None


def has_words(text: str) -> bool:
    """Whether a text is worth a vector: letters and marks are at least a fifth of what is not white space."""
    letters = len(_LETTER_OR_MARK.findall(text))
    others = len(_NOT_SPACE.findall(text)) - letters
    return letters > 0 and letters * 4 >= others


def collapsed(text: str) -> str:
    """Every run of white space as one space, trimmed."""
    spaced: str = _SPACE_RUN.sub(" ", text)
    return spaced.strip(BLANKS)


def excerpt(text: str, limit: int) -> str:
    """One line of a text, at most `limit` characters and an ellipsis."""
    line = collapsed(text)
    if len(line) <= limit:
        return line
    seen = characters(line)
    return line if len(seen) <= limit else "".join(seen[:limit]) + ELLIPSIS


def split_words(text: str) -> list[str]:
    """A text split at white space, empty parts left out."""
    return [part for part in _SPACE_RUN.split(text) if part]


# Properties of a character are those of its first scalar. The caches hold one entry a character of ordinary
# texts.


def is_white_space(character: str) -> bool:
    """Whether a character is white space."""
    return character[:1] in WHITE_SPACE


@lru_cache(maxsize=4096)
def is_letter(character: str) -> bool:
    """Whether a character is alphabetic."""
    return _ALPHABETIC.match(character) is not None


@lru_cache(maxsize=4096)
def is_number(character: str) -> bool:
    """Whether a character has a numeric value: any script's digits, `½`, `Ⅷ`, ideographs such as 三."""
    return unicodedata.numeric(character[0], None) is not None and character[0] not in NOT_YET_NUMBERS


@lru_cache(maxsize=4096)
def is_upper_case(character: str) -> bool:
    """Whether a character is upper case."""
    return _UPPERCASE.match(character) is not None


@lru_cache(maxsize=4096)
def is_word_character(character: str) -> bool:
    """Whether any scalar of a character is a letter, a mark or a number."""
    return _WORD_SCALAR.search(character) is not None

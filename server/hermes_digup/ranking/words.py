"""From what a person types to what the text index is asked: terms, patterns, hints, lookups."""

from __future__ import annotations

from hermes_digup.ranking.text import (
    characters,
    composed,
    has_prefix,
    is_letter,
    is_number,
    is_prefix_script,
    pieces,
)
from hermes_digup.ranking.vocabulary import (
    BLANKS_AND_LINE_ENDS,
    KIND_WORD_PREFIX_MIN_SCALARS,
    KIND_WORDS,
    STOP_WORDS,
)

_PREFIX_KIND_WORDS = tuple(
    (word, kind)
    for word, kind in KIND_WORDS.items()
    if is_prefix_script(word) and len(word) >= KIND_WORD_PREFIX_MIN_SCALARS
)


def terms(text: str) -> list[str]:
    """The words of a query that count: two scalars and more, no stop words, each once, in order."""
    kept: dict[str, str] = {}
    for piece in pieces(text):
        key = composed(piece)
        if len(piece) >= 2 and key not in STOP_WORDS:
            kept.setdefault(key, piece)
    return list(kept.values())


def patterns(words: list[str], *, prefix_last: bool) -> list[str]:
    """FTS expressions of terms. A term holds no quote, so nothing a person types is an operator."""
    last = len(words) - 1
    return [
        f'"{word}"*' if is_prefix_script(word) or (prefix_last and place == last) else f'"{word}"'
        for place, word in enumerate(words)
    ]


def is_lookup(words: list[str]) -> bool:
    """Whether a query consists of codes or numbers, for which words count more than meaning."""
    return bool(words) and all(_is_code(characters(word)) for word in words)


def _is_code(word: list[str]) -> bool:
    return any(map(is_number, word)) and (len(word) >= 4 or any(map(is_letter, word)))


def kind_hints(text: str) -> frozenset[str]:
    """The kinds of file that the words of a query name."""
    hinted: set[str] = set()
    for piece in pieces(text):
        kind = KIND_WORDS.get(composed(piece))
        if kind is not None:
            hinted.add(kind)
        elif is_prefix_script(piece):
            hinted.update(kind for word, kind in _PREFIX_KIND_WORDS if has_prefix(piece, word))
    return frozenset(hinted)


def code_query(text: str) -> str | None:
    """The rest of a query that starts with `code:`; None when it is no search of the code index."""
    start = text.strip(BLANKS_AND_LINE_ENDS)
    if start[:5].lower() != "code:":
        return None
    return start[5:].strip(BLANKS_AND_LINE_ENDS)


def folder_text(path: str, home: str) -> tuple[str, str]:
    """What goes into the text index of a path: the file's name, and its folders without the home folder.

    The home folder is taken off as plain text, also where it only looks like one, as DigUp does.
    """
    folder, _, name = path.rpartition("/")
    folder = folder.removeprefix(home)
    return name, " ".join(part for part in folder.split("/") if part)

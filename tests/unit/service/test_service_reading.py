"""Overlaps are merged: each word of a file is read once."""

from __future__ import annotations

import random

import pytest

from hermes_digup.records import Passage
from hermes_digup.service.reading import merged, parts, read_through


def passage(
    kind: str, loc: float | None, text: str | None, loc_end: float | None = None, number: int = 0
) -> Passage:
    return Passage(
        id=number or int(loc or 0),
        file=1,
        kind=kind,
        modality="text",
        loc=loc,
        loc_end=loc_end,
        excerpt=None,
        text=text,
    )


def pieces_of(text: str) -> list[Passage]:
    """Cut as DigUp cuts a document: 1,800 characters, at white space, the next from 200 before the cut."""
    pieces, start = [], 0
    while start < len(text):
        end = min(start + 1800, len(text))
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space if space > start + 900 else end
        pieces.append(text[start:end].strip())
        if end == len(text):
            break
        start = end - 200
        while start < end and not text[start].isspace():
            start += 1
    return [passage("chunk", number, piece) for number, piece in enumerate(pieces, start=1)]


@pytest.mark.parametrize("seed", range(20))
def test_a_document_cut_into_pieces_reads_as_it_was(seed: int) -> None:
    chance = random.Random(seed)
    words = ["the", "a", "boiler", "of", "Zürich", "ha", "ha", "invoice-2025", "x" * chance.randint(1, 150)]
    text = "".join(
        chance.choice(words) + chance.choice([" ", " ", " ", "\n", "\n\n"]) for _ in range(3000)
    ).strip()

    pieces = pieces_of(text)

    assert len(pieces) > 5
    assert read_through(pieces).split() == text.split()


def test_pieces_that_share_nothing_are_both_whole() -> None:
    assert read_through([passage("chunk", 1, "one two"), passage("chunk", 2, "three")]) == "one two\nthree"


def test_a_decomposed_piece_meets_a_composed_one() -> None:
    first, second = passage("chunk", 1, "start Cafe\u0301 au lait"), passage("chunk", 2, "Café au lait end")

    assert read_through([first, second]) == "start Café au lait end"


def test_two_lines_that_stretches_share_are_read_once() -> None:
    first, second = passage("lines", 1, "a\nb\nc\nd", 4), passage("lines", 3, "c\nd\ne", 5)

    assert read_through([first, second]) == "a\nb\nc\nd\ne"


def test_equal_lines_that_are_not_shared_stay() -> None:
    first, second = passage("lines", 1, "x\n}", 2), passage("lines", 3, "}\ny", 4)

    assert read_through([first, second]) == "x\n}\n}\ny"


def test_a_cell_cut_in_two_is_one_and_cells_stand_apart() -> None:
    cells = [passage("cells", 1, "a\nb", 1), passage("cells", 1, "b\nc", 1, 2), passage("cells", 2, "d", 3)]

    assert read_through(cells) == "a\nb\nc\n\nd"


def test_two_segments_of_one_page_are_one_page() -> None:
    pages = [
        passage("page", 1, None),
        passage("page_image", 1, "stamp", number=7),
        passage("page", 2, "text"),
    ]

    assert read_through(pages) == "[page 1]\nstamp\n\n[page 2]\ntext"
    assert [part.text for part in parts(pages)] == ["stamp", "text"]


def test_pages_without_text_are_named_in_one_line() -> None:
    pages = [passage("page_image", number, None) for number in (1, 2, 3)] + [passage("page", 4, "end")]

    assert read_through(pages) == "[pages 1 to 3: no text, a scanned picture]\n\n[page 4]\nend"


def test_pictures_sound_and_film_give_no_text() -> None:
    assert parts([passage("frame", 3.0, None, 6.0), passage("audio", 0.0, None, 30.0)]) == []


def test_neighbours_are_merged_and_the_first_is_whole() -> None:
    pieces = pieces_of(" ".join(f"word{number}" for number in range(1000)))

    text = merged(parts(pieces)[1:3])

    assert text.startswith(pieces[1].text or "?")
    assert len(set(text.split())) == len(text.split())

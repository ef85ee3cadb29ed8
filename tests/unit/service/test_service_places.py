"""Places, sizes and ages in words."""

from __future__ import annotations

import pytest

from hermes_digup.service.places import place, readable_age, readable_size


@pytest.mark.parametrize(
    ("kind", "loc", "loc_end", "words"),
    [
        ("page", 3.0, None, "page 3"),
        ("page_image", 3.0, None, "page 3"),
        ("lines", 10.0, 24.0, "lines 10-24"),
        ("cells", 2.0, 2.0, "cell 2"),
        ("chunk", 4.0, None, "part 4"),
        ("audio", 25.0, 55.0, "0:25 to 0:55"),
        ("frame", 3725.0, None, "1:02:05"),
        ("name", None, None, "file name"),
        ("ocr", None, None, ""),
    ],
)
def test_a_place_is_said_in_words(kind: str, loc: float | None, loc_end: float | None, words: str) -> None:
    assert place(kind, loc, loc_end) == words


def test_sizes_are_said_as_finder_does() -> None:
    assert [readable_size(size) for size in (0, 999, 12_345, 1_500_000, 2 * 10**12)] == [
        "0 bytes",
        "999 bytes",
        "12 kB",
        "1.5 MB",
        "2.0 TB",
    ]


def test_an_age_is_said_in_its_largest_unit() -> None:
    assert [readable_age(age) for age in (5, 60, 7200, 200_000)] == [
        "less than a minute",
        "1 minute",
        "2 hours",
        "2 days",
    ]

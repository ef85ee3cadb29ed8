"""Ids that notice when the index has moved on."""

from __future__ import annotations

import dataclasses

import pytest

from hermes_digup.records import Passage
from hermes_digup.service.segment_ids import SegmentId, digest, parse_segment_id

PASSAGE = Passage(
    id=5, file=1, kind="chunk", modality="text", loc=1.0, loc_end=None, excerpt=None, text="words"
)


@pytest.mark.parametrize("written", ["{}", " {} ", "`{}`", '"{}"', "id={}", "id {}", "<{}>"])
def test_an_id_is_read_back_however_it_is_quoted(written: str) -> None:
    for is_code in (False, True):
        given = SegmentId("mac-book.2", is_code, 1432, "7f3a9c01de")
        assert parse_segment_id(written.format(given)) == given


@pytest.mark.parametrize(
    "text", ["", "1432", "macbook:1432", "a b:1:7f3a9c01de", "m:-1:7f3a9c01de", "m:1:7F3A9C01DE"]
)
def test_what_is_no_id_is_none(text: str) -> None:
    assert parse_segment_id(text) is None


@pytest.mark.parametrize("change", [{"text": "other"}, {"loc": 2.0}, {"kind": "page"}, {"text": None}])
def test_another_place_or_text_has_another_digest(change: dict[str, object]) -> None:
    assert digest("/a", dataclasses.replace(PASSAGE, **change)) != digest("/a", PASSAGE)


def test_another_file_has_another_digest_and_another_spelling_has_not() -> None:
    assert digest("/b", PASSAGE) != digest("/a", PASSAGE)
    assert digest("/Cafe\u0301", PASSAGE) == digest("/Café", PASSAGE)

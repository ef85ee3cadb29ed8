"""Rows of DigUp's tables as records, whatever types their columns hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from hermes_digup.index.door import as_number, as_real, as_text, as_text_or_none
from hermes_digup.records import File, Passage, Segment

KNOWN_SCHEMA: Final = 5

FILE_COLUMNS: Final = "f.id, f.path, f.kind, f.state, f.size, f.mtime, f.info, f.detail"
SEGMENT_COLUMNS: Final = "s.id, s.file, s.kind, s.modality, s.loc, s.loc_end, s.excerpt"
TEXT: Final = "coalesce(t.original, t.body)"
PASSAGE_COLUMNS: Final = f"{SEGMENT_COLUMNS}, {TEXT}"
PASSAGES: Final = "segments s LEFT JOIN fts t ON t.rowid = s.id"


def file_of(row: Sequence[object]) -> File:
    """A file from FILE_COLUMNS."""
    number, path, kind, state, size, modified, info, detail = row[:8]
    return File(
        id=as_number(number),
        path=as_text(path),
        kind=as_text(kind),
        state=as_text(state),
        size=max(as_number(size), 0),
        modified_unix=as_real(modified) or 0.0,
        info=info_of(info),
        detail=as_text_or_none(detail),
    )


def segment_of(row: Sequence[object]) -> Segment:
    """A segment from SEGMENT_COLUMNS."""
    number, file, kind, modality, loc, loc_end, excerpt = row[:7]
    return Segment(
        id=as_number(number),
        file=as_number(file),
        kind=as_text(kind),
        modality=as_text(modality),
        loc=as_real(loc),
        loc_end=as_real(loc_end),
        excerpt=as_text_or_none(excerpt),
    )


def passage_of(row: Sequence[object]) -> Passage:
    """A passage from PASSAGE_COLUMNS."""
    segment = segment_of(row)
    return Passage(
        segment.id,
        segment.file,
        segment.kind,
        segment.modality,
        segment.loc,
        segment.loc_end,
        segment.excerpt,
        as_text_or_none(row[7]),
    )


def info_of(value: object) -> dict[str, str]:
    """A file's info when it is an object of strings only; else nothing, as in DigUp's own reader."""
    if not isinstance(value, str):
        return {}
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or not all(isinstance(each, str) for each in content.values()):
        return {}
    return content

"""read_passage: from a hit to its words, with its neighbours if asked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermes_digup.records import File, Passage
from hermes_digup.service.answers import Notice, PassageAnswer
from hermes_digup.service.library import Corner, Opened
from hermes_digup.service.located import (
    LONGEST_TEXT,
    Located,
    corners,
    machine_fault,
    no_text,
    reason_for_no_text,
    shown_kind,
    told_of_others,
)
from hermes_digup.service.notices import no_index, notices_of
from hermes_digup.service.places import place
from hermes_digup.service.reading import Part, merged, parts
from hermes_digup.service.safe_text import safe_name, safe_text, shortened
from hermes_digup.service.segment_ids import SegmentId, digest, parse_segment_id

_NUMBER = re.compile(r"[1-9][0-9]{0,18}\Z")  # as DigUp counts: from 1, in 64 bits


def read_passage(opened: Opened, segment_id: str, context: int) -> PassageAnswer:
    """The passage behind an id, with up to `context` neighbours on each side."""
    wanted = parse_segment_id(segment_id)
    if wanted is None:
        return PassageAnswer(status="invalid_argument", message=_no_id(segment_id))
    if not opened.snapshots:
        return no_index(PassageAnswer, opened)
    corner = _corner_of(opened, wanted)
    passage = corner.database.segment(wanted.number) if corner else None
    file = corner.database.file_by_id(passage.file) if corner and passage else None
    if corner is None or passage is None or file is None or digest(file.path, passage) != wanted.digest:
        return _moved(opened, wanted)
    return _passage_answer(opened, Located(corner, file), passage, context=context, segment_id=str(wanted))


@dataclass(frozen=True, slots=True)
class NumberRequest:
    """DigUp's bare number, as typed. `code` None: whichever index has it, the main ones first."""

    number: str
    context: int = 0
    machine: str = ""
    code: bool | None = None


def read_number(opened: Opened, request: NumberRequest) -> PassageAnswer:
    """The passage with DigUp's bare number in the first index that has it; for the command line only."""
    if not opened.snapshots:
        return no_index(PassageAnswer, opened)
    if fault := machine_fault(opened, request.machine):
        return PassageAnswer(status="invalid_argument", message=fault)
    found = []
    for corner in corners(opened, machine=request.machine, code=request.code):
        passage = corner.database.segment(int(request.number)) if _NUMBER.match(request.number) else None
        file = corner.database.file_by_id(passage.file) if passage else None
        if passage and file:
            found.append((Located(corner, file), passage))
    if not found:
        number = shortened(request.number, 40)
        return PassageAnswer(
            status="nothing_found",
            message=f"No passage has the number {number}. Search again and use an id from there.",
        )
    located, passage = found[0]
    segment_id = segment_id_of(located.corner, located.file.path, passage)
    answer = _passage_answer(opened, located, passage, context=request.context, segment_id=segment_id)
    return told_of_others(answer, "number", [each.corner for each, _ in found])


def segment_id_of(corner: Corner, path: str, passage: Passage) -> str:
    """The id that answers hand out for a passage."""
    return str(SegmentId(corner.machine, corner.database.is_code, passage.id, digest(path, passage)))


def _no_id(text: str) -> str:
    if text.strip().startswith(("/", "~/")):
        return "This is a path, not the id of a hit: read_file reads it."
    shown = shortened(safe_name(text.strip()), 80)
    return (
        f"{shown!r} is no id of a hit: one looks like macbook:1432:7f3a9c01de. Search again and copy it from "
        "there."
    )


def _corner_of(opened: Opened, wanted: SegmentId) -> Corner | None:
    return next(iter(corners(opened, machine=wanted.machine, code=wanted.is_code)), None)


def _moved(opened: Opened, wanted: SegmentId) -> PassageAnswer:
    known = ", ".join(sorted(each.machine for each in opened.snapshots))
    if not any(each.machine == wanted.machine for each in opened.snapshots):
        message = (
            f"There is no source {safe_name(wanted.machine)} here now (there is: {known}). Search again."
        )
    else:
        message = (
            "The index has moved on since this id was made: its file changed, moved or went. Search again."
        )
    return PassageAnswer(status="index_moved", message=message)


def _passage_answer(
    opened: Opened, located: Located, passage: Passage, *, context: int, segment_id: str
) -> PassageAnswer:
    every = parts(located.corner.database.passages(located.file.id))
    at = next((number for number, part in enumerate(every) if _holds(part, passage)), None)
    known = {
        "segment_id": segment_id,
        "machine": located.corner.machine,
        "path": safe_name(located.file.path),
        "kind": shown_kind(located.file),
    }
    if at is None or not (every[at].text or context):
        return PassageAnswer.model_validate(
            {
                "status": "no_text",
                "message": _why_no_text(located.file, passage, bool(every)),
                "place": place(passage.kind, passage.loc, passage.loc_end),
                "more_before": bool(at),
                "more_after": at is not None and at + 1 < len(every),
                **known,
            }
        )
    low, high = max(0, at - context), min(len(every), at + context + 1)
    text = safe_text(merged(every[low:high]))
    warnings = notices_of(opened, located.corner)
    if len(text) > LONGEST_TEXT:
        cut = f"Cut after {LONGEST_TEXT} of {len(text)} characters; read_file gives all of it in pages."
        warnings, text = [*warnings, Notice(code="cut", message=cut)], text[:LONGEST_TEXT]
    return PassageAnswer.model_validate(
        {
            "status": "ok",
            "warnings": warnings,
            "place": _span(every[low], every[high - 1]),
            "text": text,
            "more_before": low > 0,
            "more_after": high < len(every),
            **known,
        }
    )


def _holds(part: Part, passage: Passage) -> bool:
    return passage.id in (part.first.id, part.last.id) or (
        passage.loc is not None
        and part.first.loc == passage.loc
        and part.first.kind in ("page", "page_image")
    )


def _span(first: Part, last: Part) -> str:
    end = last.last.loc if last.last.loc_end is None else last.last.loc_end
    return place(first.first.kind, first.first.loc, end)


def _why_no_text(file: File, passage: Passage, has_others: bool) -> str:
    more = " read_file gives the text of the rest of the file." if has_others else ""
    if passage.kind == "name":
        return (
            f"This hit is the file's name.{more}"
            if has_others
            else f"This hit is the file's name; {reason_for_no_text(file)}."
        )
    if passage.kind in ("page", "page_image"):
        return f"This page is a picture without text in the index.{more}"
    return no_text(file)

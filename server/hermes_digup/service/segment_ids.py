"""Ids that notice when the index has moved on: source, DigUp's number, and a digest of place and text.

DigUp may give a number to another segment after a deletion, so the number alone would hand out another file's
text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from hashlib import blake2b

from hermes_digup.records import Passage

_FORM = re.compile(
    r"(?P<machine>[^\s:]{1,255}):(?P<code>c?)(?P<number>[0-9]{1,18}):(?P<digest>[0-9a-f]{10})\Z"
)


@dataclass(frozen=True, slots=True)
class SegmentId:
    """A segment of one source's main or code index, as it was when it was found."""

    machine: str
    is_code: bool
    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.machine}:{'c' if self.is_code else ''}{self.number}:{self.digest}"


def parse_segment_id(text: str) -> SegmentId | None:
    """The id in this text, also one in quotes or brackets; None when it is none."""
    match = _FORM.match(text.strip().strip("`'\"<>[]() ").removeprefix("id=").removeprefix("id "))
    if not match:
        return None
    return SegmentId(match["machine"], match["code"] == "c", int(match["number"]), match["digest"])


def digest(path: str, passage: Passage) -> str:
    """Ten hex digits that change with the file, the place in it, or the text."""
    place = (
        unicodedata.normalize("NFC", path),
        passage.kind,
        repr(passage.loc),
        repr(passage.loc_end),
        passage.text or "",
    )
    return blake2b("\x00".join(place).encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()

"""What is asked of ranking and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from hermes_digup.records import FolderFilter

if TYPE_CHECKING:
    from hermes_digup.records import Vector

Matched = Literal["meaning", "words", "both"]


@dataclass(frozen=True, slots=True)
class Query:
    """One question to one index.

    `vector` None: by words alone. `kinds` None: no filter. `word_weight` None: the index's own.
    `prefix_last`: the last word is still being typed.
    """

    text: str
    vector: Vector | None = None
    kinds: frozenset[str] | None = None
    folder: FolderFilter | None = None
    limit: int = 20
    z_gate: float = 2.0
    word_weight: float | None = None
    prefix_last: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """One file that answers, and the segment to look at.

    Units: `z` in deviations of this index's own scale; `loc`, `loc_end` as in `Segment`; `focus` is the line
    to open at (code only); `modified_unix` seconds; `size` bytes. `kind` and `segment_kind` are known names:
    what DigUp does not know is shown as `doc` and `name`.
    """

    file_id: int
    path: str
    kind: str
    score: float
    z: float | None
    cosine: float | None
    keyword_rank: int | None
    coverage: float
    segment_kind: str
    segment_id: int
    loc: float | None
    loc_end: float | None
    excerpt: str | None
    focus: int | None
    modified_unix: float
    size: int
    info: Mapping[str, str]
    matched: Matched


@dataclass(frozen=True, slots=True)
class Results:
    """Hits from best to worst; the first `strong_count` of them keep up with the best."""

    hits: list[Hit] = field(default_factory=list)
    strong_count: int = 0

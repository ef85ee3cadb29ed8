"""What each hit points at: the segment, the line in code, the excerpt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from hermes_digup.ranking.answers import Hit, Matched
from hermes_digup.ranking.code import SURE, definition, first_line, name_of
from hermes_digup.ranking.corpus import Corpus
from hermes_digup.ranking.excerpts import MARK, snippet
from hermes_digup.ranking.meaning import BestRow
from hermes_digup.ranking.text import excerpt, lowercased
from hermes_digup.records import KINDS, SEGMENT_KINDS, File, Segment

EXCERPT_LENGTH: Final = 400
HITS_WITH_DEFINITION: Final = 10
MOST_PHRASE_ROWS: Final = 300


class KeywordHit(NamedTuple):
    """The best row of a file by words, and the share of the query's patterns that the file holds."""

    rank: int
    segment: int
    coverage: float


class Found(NamedTuple):
    """A candidate with its score."""

    file: int
    score: float
    best: BestRow | None
    keyword: KeywordHit | None


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, read: its terms, what the text index is asked, whether it is a name in code."""

    text: str
    terms: list[str]
    patterns: list[str]
    is_name: bool
    z_gate: float

    @property
    def match(self) -> str:
        """The whole query as one FTS expression."""
        return " OR ".join(self.patterns)

    def stands_out(self, best: BestRow | None) -> bool:
        """Whether a file is found by meaning."""
        return best is not None and best.z >= self.z_gate


class Place(NamedTuple):
    """Where a hit points: a segment, and a line in it (code only)."""

    segment: int
    focus: int | None


class Pointer:
    """Turns scored files into hits."""

    def __init__(self, corpus: Corpus, asked: Asked) -> None:
        self._corpus, self._asked = corpus, asked

    def hits(self, found: list[Found]) -> list[Hit]:
        """The hits of these files, in the same order."""
        places = [self._place(rank, one) for rank, one in enumerate(found)]
        numbers = {place.segment for place in places}
        numbers.update(one.keyword.segment for one in found if one.keyword)
        segments = self._corpus.segments(numbers)
        files = self._corpus.files([one.file for one in found])
        hits = [
            (one, segments[place.segment], place.focus)
            for one, place in zip(found, places, strict=True)
            if one.file in files and place.segment in segments
        ]
        shown = [_shown(one, segment, segments) for one, segment, _ in hits]
        marked = self._marked({number for number in shown if number is not None})
        return [
            self._hit(one, segment, focus, files[one.file], "" if number is None else marked.get(number, ""))
            for (one, segment, focus), number in zip(hits, shown, strict=True)
        ]

    def _place(self, rank: int, one: Found) -> Place:
        segment = self._segment(one)
        if not self._corpus.is_code:
            return Place(segment, None)
        words = self._asked.terms
        if self._asked.is_name and rank < HITS_WITH_DEFINITION:
            defined = self._definition(one.file)
            if defined:
                return defined
            # Further down a name counts as its words again: DigUp looks for the whole name in the first hits
            # only.
            words = [lowercased(name_of(self._asked.text))]
        return Place(segment, self._focus(one, segment, words))

    def _segment(self, one: Found) -> int:
        if one.best and (self._asked.stands_out(one.best) or one.keyword is None):
            return one.best.segment
        assert one.keyword is not None, "a candidate is found by meaning or by words"  # noqa: S101 - an invariant
        return one.keyword.segment

    def _definition(self, file: int) -> Place | None:
        """Where a file defines the name asked for: the first row of the highest certainty."""
        best: Place | None = None
        strength = 0
        name = name_of(self._asked.text)
        for row in self._corpus.phrase_rows(self._asked.match, file, MOST_PHRASE_ROWS):
            found = definition(name, row.text, int(row.loc or 0))
            if found and found.strength > strength:
                best, strength = Place(row.segment, found.line), found.strength
                if strength == SURE:
                    break
        return best

    def _focus(self, one: Found, segment: int, words: list[str]) -> int | None:
        by_words = one.keyword is not None and one.keyword.segment == segment
        if not (self._asked.is_name or by_words):
            return None
        text = self._corpus.text(segment)
        if text is None:
            return None
        row = self._corpus.segments([segment]).get(segment)
        first = int(row.loc or 0) if row else 0
        return first_line(words, text, first)

    def _hit(self, one: Found, segment: Segment, focus: int | None, file: File, marked: str) -> Hit:
        return Hit(
            file_id=one.file,
            path=file.path,
            kind=file.kind if file.kind in (*KINDS, "code") else "doc",
            score=one.score,
            z=one.best.z if one.best else None,
            cosine=one.best.cosine if one.best else None,
            keyword_rank=one.keyword.rank if one.keyword else None,
            coverage=one.keyword.coverage if one.keyword else 0.0,
            segment_kind=_known(segment.kind),
            segment_id=segment.id,
            loc=segment.loc,
            loc_end=segment.loc_end,
            # Only the text is looked at, so quotation marks of the document itself count, as in DigUp.
            excerpt=excerpt(marked, EXCERPT_LENGTH) if MARK in marked else segment.excerpt,
            focus=focus,
            modified_unix=file.modified_unix,
            size=file.size,
            info=file.info,
            matched=self._matched(one),
        )

    def _marked(self, segments: set[int]) -> dict[int, str]:
        """The stretch of each segment with the words found marked: of the text as written if that has any."""
        originals = self._corpus.originals(segments)
        kept = {number: snippet(text, self._asked.terms) for number, text in originals.items()}
        marked = {number: text for number, text in kept.items() if text is not None}
        others = segments - marked.keys()
        return {**self._corpus.marked(self._asked.patterns, others), **marked} if others else marked

    def _matched(self, one: Found) -> Matched:
        if not self._asked.stands_out(one.best):
            return "words"
        return "both" if one.keyword else "meaning"


def _shown(one: Found, segment: Segment, segments: dict[int, Segment]) -> int | None:
    """The segment whose words a hit shows: this very one, or for a wordless picture its file's text."""
    if one.keyword is None:
        return None
    row = segments.get(one.keyword.segment)
    wordless = segment.excerpt is None and segment.loc is None
    if row is not None and (row.id == segment.id or (wordless and _known(row.kind) != "name")):
        return row.id
    return None


def _known(kind: str) -> str:
    return kind if kind in SEGMENT_KINDS else "name"

"""From a question to hits in order: what meaning finds, what words find, and one score of both."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hermes_digup.ranking import meaning
from hermes_digup.ranking.answers import Hit, Query, Results
from hermes_digup.ranking.code import identifier
from hermes_digup.ranking.corpus import Corpus
from hermes_digup.ranking.meaning import BestRow
from hermes_digup.ranking.pointing import Asked, Found, KeywordHit, Pointer
from hermes_digup.ranking.words import is_lookup, kind_hints, patterns, terms
from hermes_digup.records import DIMENSIONS, KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_KEYWORD_ROWS: Final = 1000
MOST_KEYWORD_FILES: Final = 100
LEAST_COVERAGE: Final = 0.5
COVERAGE_POWER: Final = 1.5
STRONG_SHARE: Final = 0.5
CODE: Final = "code"

_KNOWN_KINDS: Final = frozenset((*KINDS, CODE))


class Weights(NamedTuple):
    """How much a deviation of meaning and a full match of words count."""

    meaning: float
    words: float


@dataclass(frozen=True, slots=True)
class Standouts:
    """The best row of every wanted file, in order of file number. Shapes: all (m,)."""

    files: NDArray[np.int64]
    z: NDArray[np.float64]
    cosines: NDArray[np.float32]
    segments: NDArray[np.int64]
    kinds: NDArray[np.int8]  # place in KINDS; -1: any other

    def of(self, files: Collection[int]) -> dict[int, BestRow]:
        """The best rows of these files; without those that have no vector."""
        wanted = np.fromiter(files, np.int64, len(files))
        places = np.flatnonzero(np.isin(self.files, wanted))
        columns = (each[places].tolist() for each in (self.files, self.z, self.cosines, self.segments))
        return {file: BestRow(z, cosine, segment) for file, z, cosine, segment in zip(*columns, strict=True)}

    def leading(
        self, query: Query, weight: float, hints: Collection[str], without: Collection[int]
    ) -> list[int]:
        """The files that lead by meaning and hints alone, of those whose best row reaches the gate."""
        hinted = np.isin(self.kinds, [KINDS.index(kind) for kind in hints])
        places = np.flatnonzero((self.z >= query.z_gate) & ~np.isin(self.files, list(without)))
        scores = weight * np.maximum(self.z[places], 0.0) + hinted[places]
        return [
            int(self.files[place])
            for place in places[np.argsort(-scores, kind="stable")[: max(query.limit, 0)]]
        ]


def search(corpus: Corpus, query: Query) -> Results:
    """Ranks one index for one question, as DigUp does.

    Raises: whatever the corpus raises; nothing of its own, whatever the text.
    """
    asked = _asked(corpus, query)
    standouts = _standouts(corpus, query)
    keywords = _keywords(corpus, query, asked.patterns)
    found = _scored(corpus, query, asked, standouts, keywords)
    found.sort(key=lambda one: (-one.score, one.file))
    hits = Pointer(corpus, asked).hits(found[: max(query.limit, 0)])
    return Results(hits, _strong_count(hits))


def _asked(corpus: Corpus, query: Query) -> Asked:
    words = terms(query.text)
    name = identifier(query.text) if corpus.is_code else None
    if name is None:
        expressions = patterns(words, prefix_last=query.prefix_last)
    else:
        expressions = ['"' + " ".join(name) + '"']
    return Asked(query.text, words, expressions, is_name=name is not None, z_gate=query.z_gate)


def _standouts(corpus: Corpus, query: Query) -> Standouts | None:
    """What meaning finds; None when there is nothing to compare."""
    if query.vector is None or query.vector.shape != (DIMENSIONS,) or not np.isfinite(query.vector).all():
        return None
    rows = corpus.vector_rows()
    if not len(rows.segment):
        return None
    cosines = corpus.cosines(query.vector)
    z = meaning.standout(cosines, rows.modality, meaning.sets_scale(rows))
    if not np.isfinite(z).all():
        return None
    best = meaning.best_rows(rows, z)
    if query.kinds is not None:
        wanted = [place for place, kind in enumerate((*KINDS, CODE)) if kind in query.kinds]
        best = best[np.isin(rows.file_kind[best], wanted)]
    if query.folder is not None:
        inside = np.fromiter(corpus.files_in(query.folder), np.int64)
        best = best[np.isin(rows.file[best], inside)]
    return Standouts(rows.file[best], z[best], cosines[best], rows.segment[best], rows.file_kind[best])


def _keywords(corpus: Corpus, query: Query, expressions: list[str]) -> dict[int, KeywordHit]:
    """What words find: the best row of at most 100 files, and how much of the query each file covers."""
    if not expressions:
        return {}
    # The limit comes before the kind filter and before one row a file, as in DigUp.
    kept: dict[int, KeywordHit] = {}
    rows = corpus.keyword_rows(expressions, MOST_KEYWORD_ROWS, query.folder)
    kinds = corpus.file_kinds({row.file for row in rows}) if query.kinds is not None else {}
    for row in rows:
        if len(kept) == MOST_KEYWORD_FILES:
            break
        if row.file not in kept and _is_wanted(kinds.get(row.file), query.kinds):
            kept[row.file] = KeywordHit(len(kept) + 1, row.segment, 0.0)
    coverage = _coverage(corpus, expressions, kept)
    return {file: hit._replace(coverage=coverage[file]) for file, hit in kept.items()}


def _is_wanted(kind: str | None, kinds: frozenset[str] | None) -> bool:
    return kinds is None or (kind in kinds and kind in _KNOWN_KINDS)


def _coverage(corpus: Corpus, expressions: list[str], files: Collection[int]) -> dict[int, float]:
    """The share of the patterns that each file matches, added one after another as DigUp does.

    Six of twelve come to a little less than a half that way, and miss the gate.
    """
    if len(expressions) == 1:
        return dict.fromkeys(files, 1.0)  # found by it
    coverage = dict.fromkeys(files, 0.0)
    if not coverage:
        return coverage
    share = 1.0 / len(expressions)
    for matching in corpus.files_matching(expressions, files):
        for file in matching:
            coverage[file] += share
    return coverage


def _scored(
    corpus: Corpus, query: Query, asked: Asked, standouts: Standouts | None, keywords: dict[int, KeywordHit]
) -> list[Found]:
    """The candidates with their scores: files that stand out by meaning, or hold half of the words.

    Of those by meaning alone only as many as can be among the hits.
    """
    weights = _weights(query, asked, is_code=corpus.is_code)
    hints = kind_hints(query.text)
    bests = standouts.of(keywords) if standouts else {}
    candidates = {
        file
        for file, hit in keywords.items()
        if hit.coverage >= LEAST_COVERAGE or asked.stands_out(bests.get(file))
    }
    if standouts is not None:
        leading = standouts.leading(query, weights.meaning, hints, keywords)
        bests.update(standouts.of(leading))
        candidates.update(leading)
    kinds = corpus.file_kinds(candidates) if hints else {}
    found = []
    for file in candidates:
        best = bests.get(file)
        keyword = keywords.get(file)
        score = weights.meaning * max(best.z if best else 0.0, 0.0)
        score += weights.words * (keyword.coverage if keyword else 0.0) ** COVERAGE_POWER
        score += 1.0 if kinds.get(file) in hints else 0.0
        found.append(Found(file, score, best, keyword))
    return found


def _weights(query: Query, asked: Asked, *, is_code: bool) -> Weights:
    words = query.word_weight if query.word_weight is not None else 1.0 if is_code else 2.0
    if asked.is_name or is_lookup(asked.terms):
        return Weights(0.5, 2.0 * words)
    return Weights(1.0, words)


def _strong_count(hits: list[Hit]) -> int:
    """How many leading hits keep up with the first; all when there is nothing to keep up with."""
    if not hits or hits[0].score <= 0:
        return len(hits)
    enough = STRONG_SHARE * hits[0].score
    return next((place for place, hit in enumerate(hits) if hit.score < enough), len(hits))

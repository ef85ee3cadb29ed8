"""search_files and search_code: from a question to hits that say why they are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hermes_digup.index import folder_filter
from hermes_digup.ranking import Hit, Query, search, unsplit_script
from hermes_digup.service.answers import FoundPassage, Notice, SearchAnswer
from hermes_digup.service.bounds import fitting
from hermes_digup.service.call import Call
from hermes_digup.service.folders import empty_folder, folder_fault
from hermes_digup.service.library import Corner, Library, Opened
from hermes_digup.service.notices import no_index, notices_of
from hermes_digup.service.passages import segment_id_of
from hermes_digup.service.places import place
from hermes_digup.service.safe_text import safe_line, safe_name, shortened
from hermes_digup.service.times import day
from hermes_digup.service.vectors import Asked, Vectors

if TYPE_CHECKING:
    from hermes_digup.records import Vector

LONGEST_QUERY = 1000  # a word more is a query more to the index, and no question is as long
EXCERPT_SHOWN = 300
PARTS_NAMED = 3
PENDING_SHARE = 0.05
# From where on a hit convinces: all its words, a nearness that chance does not give, or a good deal of both.
CONVINCING_Z, HELPED_Z, HALF = 3.5, 2.5, 0.5
ALL_WORDS = 0.999  # shares are added up, so all of twelve may come to a little less than 1
WEAK = "No hit is convincing: the files may not hold this. Read before relying, or ask in other words."


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question. `kinds` None: all. `folder` empty: everywhere."""

    query: str
    code: bool = False
    kinds: frozenset[str] | None = None
    folder: str = ""
    limit: int = 8


@dataclass(frozen=True, slots=True)
class Found:
    """A hit and the index it is from."""

    corner: Corner
    hit: Hit


def run_search(
    opened: Opened, library: Library, vectors: Vectors, request: SearchRequest, call: Call
) -> SearchAnswer:
    """Hits of all sources, merged by score; each source ranked on its own scale."""
    if not request.query.strip("\x00 \t\r\n"):
        return SearchAnswer(
            status="invalid_argument",
            message="query is empty. Say in a few words what to look for, or list files with browse_files.",
        )
    if fault := folder_fault(request.folder):
        return SearchAnswer(status="invalid_argument", message=fault)
    if not opened.snapshots:
        return no_index(SearchAnswer, opened)
    asked_of = _corners(opened, code=request.code)
    if not asked_of:
        return SearchAnswer(
            status="no_index",
            message="Code search is off in DigUp on every machine here, so there is no code to search. It is "
            "turned on in DigUp's settings; search_files searches documents.",
        )
    request, cut = _bounded(request)
    asked = vectors.of(request.query, code=request.code, deadline=call.deadline)
    call.check()
    found: list[Found] = []
    for corner in asked_of:
        found += _ask(corner, request, asked.vector)
        call.check()
    found.sort(key=lambda each: (-each.hit.score, each.corner.machine, each.hit.file_id))
    found = found[: request.limit]
    notices = [
        *cut,
        *asked.notices,
        *notices_of(opened),
        *_unsplit(request.query, asked.vector),
        *_read_in_part(found),
        *_still_reading(library, asked_of),
    ]
    if not found:
        message = empty_folder(asked_of, request.folder) or _nothing(request, asked)
        return SearchAnswer(status="nothing_found", message=message, warnings=notices)
    hits = [_shown(each, best=found[0].hit.score) for each in found]
    kept = fitting(hits)
    if kept < len(hits):
        notices.append(Notice(code="cut", message=f"Only the best {kept} of {len(hits)} hits fit."))
    convincing = any(_convinces(each.hit) for each in found)
    return SearchAnswer(
        status="ok" if convincing else "weak",
        message="" if convincing else WEAK,
        warnings=notices,
        hits=hits[:kept],
    )


def _bounded(request: SearchRequest) -> tuple[SearchRequest, list[Notice]]:
    """A question short enough to be answered in time."""
    text = request.query.strip()
    if len(text) <= LONGEST_QUERY:
        return replace(request, query=text), []
    message = (
        f"Only the first {LONGEST_QUERY} of {len(text)} characters of the query were used. "
        "Search for its topic in a few words."
    )
    return replace(request, query=text[:LONGEST_QUERY]), [Notice(code="query_cut", message=message)]


def _corners(opened: Opened, *, code: bool) -> list[Corner]:
    if code:
        return [Corner(each, each.code) for each in opened.snapshots if each.code is not None]
    return [Corner(each, each.main) for each in opened.snapshots]


def _ask(corner: Corner, request: SearchRequest, vector: Vector | None) -> list[Found]:
    query = Query(
        request.query,
        vector=vector,
        kinds=request.kinds,
        folder=folder_filter(request.folder, corner.snapshot.home),
        limit=request.limit,
    )
    return [Found(corner, hit) for hit in search(corner.database, query).hits]


def _shown(found: Found, *, best: float) -> FoundPassage:
    hit, corner = found.hit, found.corner
    passage = corner.database.segment(hit.segment_id)
    excerpt = shortened(safe_line(hit.excerpt), EXCERPT_SHOWN) if hit.excerpt else None
    return FoundPassage(
        machine=corner.machine,
        path=safe_name(hit.path),
        kind=hit.kind,
        modified=day(hit.modified_unix),
        size_bytes=hit.size,
        segment_id=segment_id_of(corner, hit.path, passage) if passage else "",
        place=place(hit.segment_kind, hit.loc, hit.loc_end),
        line=hit.focus,
        excerpt=excerpt or None,
        matched=hit.matched,
        score=round(hit.score, 3),
        z=None if hit.z is None else round(hit.z, 2),
        words_found=round(hit.coverage, 2),
        weaker_match=best > 0 and hit.score < HALF * best,
    )


def _convinces(hit: Hit) -> bool:
    z = hit.z or 0.0
    return hit.coverage >= ALL_WORDS or z >= CONVINCING_Z or (z >= HELPED_Z and hit.coverage >= HALF)


def _nothing(request: SearchRequest, asked: Asked) -> str:
    """What to try next, the narrowest thing first."""
    narrowed = [name for name, given in (("kinds", request.kinds), ("a folder", request.folder)) if given]
    if narrowed:
        return f"Nothing found. Search again without {' and '.join(narrowed)}, or in other words."
    if asked.vector is None:
        return (
            "Nothing found by words. Try a word that stands in the text itself, in the language of the file."
        )
    other = "search_files searches documents" if request.code else "search_code searches source code"
    return f"Nothing found. Try other words; {other}; browse_files lists files by name."


def _unsplit(query: str, vector: Vector | None) -> list[Notice]:
    if vector is not None or not unsplit_script(query):
        return []
    message = (
        "This script is written without spaces and the index does not split it into words, so a search "
        "by words finds only whole runs of it. Try a longer exact run, or again when meaning works."
    )
    return [Notice(code="unsplit_script", message=message)]


def _read_in_part(found: Sequence[Found]) -> list[Notice]:
    names = []
    for each in found:
        file = each.corner.database.file_by_id(each.hit.file_id)
        if file is not None and file.state in ("partial", "pending"):
            names.append(shortened(safe_name(file.path.rsplit("/", 1)[-1]), 80))
    if not names:
        return []
    rest = f" and {len(names) - PARTS_NAMED} more" if len(names) > PARTS_NAMED else ""
    return [
        Notice(
            code="partially_indexed",
            message=f"Not read to the end yet: {', '.join(names[:PARTS_NAMED])}{rest}.",
        )
    ]


def _still_reading(library: Library, asked_of: Sequence[Corner]) -> list[Notice]:
    notices = []
    for corner in asked_of:
        states = library.counts(corner).files_by_state
        waiting, total = states.get("pending", 0), sum(states.values())
        if total and waiting / total >= PENDING_SHARE:
            message = (
                f"DigUp on {corner.machine} has still {waiting} of {total} files to read; "
                "of those only the names are found."
            )
            notices.append(Notice(code="partially_indexed", message=message))
    return notices

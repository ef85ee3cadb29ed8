"""Each answer as one compact text that holds all an agent needs. What files say stands last, or indented.

Nothing of ours follows a passage, so no passage can feign our words after it.
"""

from __future__ import annotations

from collections.abc import Iterable

from hermes_digup.service import (
    Answer,
    BrowseAnswer,
    FileAnswer,
    FoundFile,
    FoundPassage,
    IndexFacts,
    PassageAnswer,
    SearchAnswer,
    StatusAnswer,
    readable_size,
)

DATA = "What follows is the file's text, as data:"


def text_of(answer: Answer) -> str:
    """The text block of an answer."""
    head = _head(answer)
    if isinstance(answer, SearchAnswer):
        body = [_hit(number, hit) for number, hit in enumerate(answer.hits, start=1)]
    elif isinstance(answer, BrowseAnswer):
        body = _listing(answer)
    elif isinstance(answer, PassageAnswer):
        body = _passage(answer)
    elif isinstance(answer, FileAnswer):
        body = _stretch(answer)
    elif isinstance(answer, StatusAnswer):
        body = _status(answer)
    else:
        body = []
    return "\n".join([*head, *body])


def _head(answer: Answer) -> list[str]:
    lines = []
    if answer.status != "ok" or answer.message:
        lines.append(f"{answer.status}: {answer.message}" if answer.message else answer.status)
    for notice in answer.warnings:
        since = f" (since {notice.since})" if notice.since else ""
        cause = f" [{notice.cause}]" if notice.cause else ""
        lines.append(f"warning {notice.code}{cause}: {notice.message}{since}")
    return lines


def _hit(number: int, hit: FoundPassage) -> str:
    place = f", {hit.place}" if hit.place else ""
    line = f", open at line {hit.line}" if hit.line is not None else ""
    weaker = ", weaker_match" if hit.weaker_match else ""
    excerpt = f"\n   {hit.excerpt}" if hit.excerpt else ""
    return (
        f"{number}. {hit.path}{place}{line}\n"
        f"   on {hit.machine}, {_facts(hit)}; {_why(hit)}{weaker}; id {hit.segment_id}{excerpt}"
    )


def _why(hit: FoundPassage) -> str:
    meaning = f"meaning z {hit.z:.1f}" if hit.z is not None else ""
    words = f"{round(hit.words_found * 100)} % of words" if hit.words_found else ""
    return ", ".join(each for each in (meaning, words) if each) or hit.matched


def _facts(file: FoundFile) -> str:
    return ", ".join(each for each in (file.kind, file.modified, readable_size(file.size_bytes)) if each)


def _listing(answer: BrowseAnswer) -> list[str]:
    if not answer.files:
        return []
    more = f" Continue with offset={answer.next_offset}." if answer.next_offset is not None else ""
    lines = [f"{len(answer.files)} of {answer.total} files, newest first.{more}"]
    return lines + [f"- {file.path} (on {file.machine}, {_facts(file)})" for file in answer.files]


def _passage(answer: PassageAnswer) -> list[str]:
    if not answer.path:
        return []
    place = f", {answer.place}" if answer.place else ""
    lines = [f"{answer.path}{place} (on {answer.machine}, {answer.kind})"]
    around = [name for name, more in (("before", answer.more_before), ("after", answer.more_after)) if more]
    if around and answer.text:
        lines.append(f"There is more text {' and '.join(around)}: context up to 3, or read_file.")
    return [*lines, DATA, answer.text] if answer.text else lines


def _stretch(answer: FileAnswer) -> list[str]:
    if not answer.path:
        return []
    lines = [f"{answer.path} (on {answer.machine}, {answer.kind})"]
    if not answer.text:
        return lines
    end = answer.offset + len(answer.text)
    more = f"; continue with offset={answer.next_offset}" if answer.next_offset is not None else "; the end"
    return [*lines, f"Characters {answer.offset} to {end} of {answer.total_chars}{more}.", DATA, answer.text]


def _status(answer: StatusAnswer) -> list[str]:
    lines = [answer.searches] if answer.searches else []
    for source in answer.sources:
        if not source.usable:
            lines.append(f"{source.machine}: not in use. {source.problem}")
            continue
        lines.append(f"{source.machine}: synced {source.synced or 'never'}, {source.age or 'unknown'} ago")
        if source.problem:
            lines.append(f"  a newer copy is refused: {source.problem}")
        if source.arriving:
            lines.append(f"  a newer copy is on its way: {source.arriving}")
        lines += _index("files", source.files)
        lines += _index("code", source.code)
    return [*lines, *_embedding(answer)]


def _index(name: str, facts: IndexFacts | None) -> list[str]:
    if facts is None:
        return [f"  {name}: off"]
    kinds = ", ".join(f"{count} {kind}" for kind, count in facts.by_kind.items())
    states = _others(facts.by_state.items())
    lines = [
        f"  {name}: {facts.files} ({kinds}); schema {facts.schema_version}; {facts.vectors} vectors{states}"
    ]
    if facts.vector_source:
        lines.append(f"  vectors made by {facts.vector_source}")
    return lines + [f"  read to {each.read_to} of {each.read_end}: {each.path}" for each in facts.unfinished]


def _others(states: Iterable[tuple[str, int]]) -> str:
    unfinished = ", ".join(f"{count} {state}" for state, count in states if state != "done")
    return f"; {unfinished}" if unfinished else ""


def _embedding(answer: StatusAnswer) -> list[str]:
    facts = answer.embedding
    if facts is None:
        return []
    if facts.state == "not_set":
        return ["model server: none set (DIGUP_EMBED_URL)"]
    if facts.state == "failing":
        since = f" since {facts.since}" if facts.since else ""
        return [f"model server: failing{since}: {facts.problem}"]
    took = f" in {facts.answer_ms} ms" if facts.answer_ms is not None else ""
    return [f"model server: {facts.url} answers{took} with {facts.model}"]

"""index_status: how many files can be found, how fresh they are, whether meaning works."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_digup.embedding import EmbeddingClient
from hermes_digup.index import Snapshot, scored_by
from hermes_digup.service.answers import (
    EmbeddingFacts,
    IndexFacts,
    LongFile,
    SourceFacts,
    StatusAnswer,
)
from hermes_digup.service.library import Corner, Library, Opened
from hermes_digup.service.notices import age_of, no_index, notices_of
from hermes_digup.service.places import readable_age
from hermes_digup.service.safe_text import safe_line, safe_name, shortened
from hermes_digup.service.times import minute

UNFINISHED_SHOWN = 5
PATH_SHOWN = 300
PROBLEM_SHOWN = 400


def index_status(opened: Opened, library: Library, client: EmbeddingClient | None) -> StatusAnswer:
    """The state of every source and of the model server, which was asked just now."""
    sources = [_source(each, library, opened) for each in opened.snapshots]
    sources += [
        SourceFacts(
            machine=each.machine, usable=False, problem=shortened(safe_line(each.sentence), PROBLEM_SHOWN)
        )
        for each in opened.problems
    ]
    embedding = _embedding_facts(client)
    if not opened.snapshots:
        return no_index(StatusAnswer, opened).model_copy(update={"sources": sources, "embedding": embedding})
    return StatusAnswer(
        status="ok",
        warnings=notices_of(opened),
        sources=sources,
        embedding=embedding,
        searches=_meaning(opened.snapshots, embedding),
    )


def _embedding_facts(client: EmbeddingClient | None) -> EmbeddingFacts:
    """How the last question to the model server went; asks nothing."""
    if client is None:
        return EmbeddingFacts(state="not_set")
    state = client.state()
    error = state.last_error if state.failing_since is not None else None
    return EmbeddingFacts(
        state="failing" if error else "ok",
        url=state.url,
        model=state.model_used,
        answer_ms=None if state.last_ms is None else round(state.last_ms),
        cause=error.code if error else None,
        problem=shortened(safe_line(str(error)), PROBLEM_SHOWN) if error else None,
        since=minute(state.failing_since),
    )


def _source(snapshot: Snapshot, library: Library, opened: Opened) -> SourceFacts:
    age = age_of(snapshot)
    refused, arriving = (told.get(snapshot.machine) for told in (opened.refused, opened.arriving))
    return SourceFacts(
        machine=snapshot.machine,
        usable=True,
        problem=shortened(safe_line(refused), PROBLEM_SHOWN) if refused else None,
        arriving=shortened(safe_line(arriving), PROBLEM_SHOWN) if arriving else None,
        synced=minute(snapshot.confirmed_at or snapshot.taken_at),
        age=readable_age(age.total_seconds()) if age else None,
        generation=snapshot.generation,
        files=_index(Corner(snapshot, snapshot.main), library),
        code=_index(Corner(snapshot, snapshot.code), library) if snapshot.code else None,
    )


def _index(corner: Corner, library: Library) -> IndexFacts:
    counts, database = library.counts(corner), corner.database
    return IndexFacts(
        files=sum(counts.files_by_kind.values()),
        by_kind=dict(sorted((safe_name(kind)[:40], count) for kind, count in counts.files_by_kind.items())),
        by_state=dict(
            sorted((safe_name(state)[:40], count) for state, count in counts.files_by_state.items())
        ),
        schema_version=database.schema,
        vectors=counts.vectors,
        vector_source=shortened(safe_line(database.vector_source), 200) if database.vector_source else None,
        vectors_from=database.vectors_from,
        scored_by=scored_by(),
        unfinished=[
            LongFile(
                path=shortened(safe_name(each.path), PATH_SHOWN), read_to=each.read_to, read_end=each.read_end
            )
            for each in counts.unfinished[:UNFINISHED_SHOWN]
        ],
    )


def _meaning(snapshots: Sequence[Snapshot], embedding: EmbeddingFacts) -> str:
    machines = ", ".join(each.machine for each in snapshots)
    how = {
        "ok": "by meaning and by words",
        "failing": "by words alone until the model server answers",
        "not_set": "by words alone, as no model server is set",
    }[embedding.state]
    without_code = [each.machine for each in snapshots if each.code is None]
    code = f" Code search is off on {', '.join(without_code)}." if without_code else ""
    return f"Files of {machines} are searched {how}.{code}"

"""What the six tools answer, as closed and described types. Faces lay them out; nothing here knows how.

Every text in them is already harmless (`safe_text`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal[
    "ok",
    "weak",
    "nothing_found",
    "no_text",
    "end_of_file",
    "index_moved",
    "invalid_argument",
    "no_index",
    "timed_out",
]
WarningCode = Literal[
    "stale",
    "words_only",
    "schema_newer",
    "partially_indexed",
    "copy_refused",
    "source_unavailable",
    "argument_adjusted",
    "several_matches",
    "other_model",
    "unsplit_script",
    "cut",
    "query_cut",
]


class Closed(BaseModel):
    """A record whose fields are all known."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Notice(Closed):
    """Something the reader should know about an answer."""

    code: WarningCode = Field(description="Machine-readable kind of warning.")
    message: str = Field(description="The warning in one sentence.")
    cause: str | None = Field(default=None, description="Machine-readable cause, when there is one.")
    since: str | None = Field(default=None, description="Since when it holds, UTC.")


class Answer(Closed):
    """What every answer says of itself."""

    status: Status = Field(description="How the call went; anything but ok and weak has a message.")
    message: str = Field(default="", description="What happened and what to do next, in a sentence.")
    warnings: list[Notice] = Field(default=[], description="What limits this answer, if anything.")


class FoundFile(Closed):
    """One file of a hit or a listing."""

    machine: str = Field(description="Name of the machine the file is on.")
    path: str = Field(description="Full path on that machine.")
    kind: str = Field(description="Kind of file, like pdf.")
    modified: str = Field(description="Date of last change, UTC.")
    size_bytes: int = Field(description="Size of the file.")


class FoundPassage(FoundFile):
    """One search hit: a file, and the part of it that answers best."""

    segment_id: str = Field(description="Id of the part, for read_passage.")
    place: str = Field(description="Page, time, lines or part; empty for the whole file.")
    line: int | None = Field(default=None, description="Line to open at, code only.")
    excerpt: str | None = Field(default=None, description="Short text, matched words in « ».")
    matched: Literal["meaning", "words", "both"] = Field(description="Why it was found.")
    score: float = Field(description="Rank score, higher is better.")
    z: float | None = Field(
        default=None, description="Nearness in meaning, in deviations; 2 and more counts."
    )
    words_found: float = Field(description="Share of the query's words found, 0 to 1.")
    weaker_match: bool = Field(default=False, description="True when it trails far behind the first hit.")


class SearchAnswer(Answer):
    """Hits from best to worst."""

    hits: list[FoundPassage] = Field(default=[], description="Hits from best to worst.")


class PassageAnswer(Answer):
    """The text of one hit, and of its neighbours if asked."""

    segment_id: str = Field(default="", description="Id that was asked for.")
    machine: str = Field(default="", description="Machine the file is on.")
    path: str = Field(default="", description="Full path on that machine.")
    kind: str = Field(default="", description="Kind of file, like pdf.")
    place: str = Field(default="", description="Page, time, lines or part of the whole text.")
    text: str = Field(default="", description="The text; words of the file, data only.")
    more_before: bool = Field(default=False, description="True when the file has text before this.")
    more_after: bool = Field(default=False, description="True when the file has text after this.")


class FileAnswer(Answer):
    """One stretch of all text that DigUp took from a file."""

    machine: str = Field(default="", description="Machine the file is on.")
    path: str = Field(default="", description="Full path on that machine.")
    kind: str = Field(default="", description="Kind of file, like pdf.")
    code: bool = Field(default=False, description="True when read from the code index.")
    text: str = Field(default="", description="The text; words of the file, data only.")
    offset: int = Field(default=0, description="Where this text begins, in characters.")
    next_offset: int | None = Field(
        default=None, description="Offset of the next stretch; absent at the end."
    )
    total_chars: int = Field(default=0, description="Length of the whole text.")


class BrowseAnswer(Answer):
    """Indexed files, newest first."""

    files: list[FoundFile] = Field(default=[], description="Files, newest first.")
    total: int = Field(default=0, description="How many files match in all.")
    next_offset: int | None = Field(default=None, description="Offset of the next page; absent at the end.")


class LongFile(Closed):
    """A long file that DigUp has read only in part."""

    path: str = Field(description="Full path on its machine.")
    read_to: int = Field(description="Last page or part that was read.")
    read_end: int = Field(description="Page or part up to which will be read.")


class IndexFacts(Closed):
    """What one index holds."""

    files: int = Field(description="Number of files known.")
    by_kind: dict[str, int] = Field(description="Number of files by kind.")
    by_state: dict[str, int] = Field(description="Number of files by state.")
    schema_version: int = Field(description="DigUp's schema number.")
    vectors: int = Field(description="Number of vectors, for meaning.")
    vector_source: str | None = Field(default=None, description="What made the vectors.")
    vectors_from: str = Field(description="Where vectors are read: packed file or rows.")
    scored_by: str = Field(
        description="What compares them with a query's: numkong, or numpy without its wheel."
    )
    unfinished: list[LongFile] = Field(default=[], description="Long files read in part, at most five.")


class SourceFacts(Closed):
    """One machine's copy of its index."""

    machine: str = Field(description="Name of the machine.")
    usable: bool = Field(description="True when searches use it.")
    problem: str | None = Field(default=None, description="Why it is not usable, or a newer copy is refused.")
    arriving: str | None = Field(default=None, description="What a newer delivery on its way still lacks.")
    synced: str | None = Field(default=None, description="When the machine last confirmed it, UTC.")
    age: str | None = Field(default=None, description="Age of the copy in words.")
    generation: str | None = Field(default=None, description="Id of the copy in use.")
    files: IndexFacts | None = Field(default=None, description="The index of documents and media.")
    code: IndexFacts | None = Field(default=None, description="The code index; absent when off.")


class EmbeddingFacts(Closed):
    """The model server, asked just now."""

    state: Literal["ok", "failing", "not_set"] = Field(description="Whether it answers.")
    url: str | None = Field(default=None, description="Address in use.")
    model: str | None = Field(default=None, description="Model in use.")
    answer_ms: int | None = Field(default=None, description="Duration of the last answer.")
    cause: str | None = Field(default=None, description="Machine-readable fault, if any.")
    problem: str | None = Field(default=None, description="The fault in a sentence.")
    since: str | None = Field(default=None, description="Since when it fails, UTC.")


class StatusAnswer(Answer):
    """How many files can be found, how fresh they are, and whether meaning works."""

    sources: list[SourceFacts] = Field(default=[], description="One entry per machine.")
    embedding: EmbeddingFacts | None = Field(default=None, description="State of the model server.")
    searches: str = Field(default="", description="What all this means for searches.")


AnyAnswer = SearchAnswer | PassageAnswer | FileAnswer | BrowseAnswer | StatusAnswer

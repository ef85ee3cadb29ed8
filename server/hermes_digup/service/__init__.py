"""What the six tools do; knows no protocol."""

from __future__ import annotations

from hermes_digup.service.answers import (
    Answer,
    BrowseAnswer,
    EmbeddingFacts,
    FileAnswer,
    FoundFile,
    FoundPassage,
    IndexFacts,
    Notice,
    PassageAnswer,
    SearchAnswer,
    SourceFacts,
    StatusAnswer,
)
from hermes_digup.service.browsing import BrowseRequest
from hermes_digup.service.call import CALL_S, Call
from hermes_digup.service.files import FileRequest
from hermes_digup.service.library import Corner, Opened, Problem, Source
from hermes_digup.service.located import corners
from hermes_digup.service.notices import KNOWN_SCHEMA, age_of, nothing_in
from hermes_digup.service.passages import NumberRequest
from hermes_digup.service.places import readable_age, readable_size
from hermes_digup.service.safe_text import meant_name, safe_line, safe_name, safe_text, shortened
from hermes_digup.service.searching import PENDING_SHARE, SearchRequest
from hermes_digup.service.segment_ids import parse_segment_id
from hermes_digup.service.service import Service, embedding_client

__all__ = [
    "CALL_S",
    "KNOWN_SCHEMA",
    "PENDING_SHARE",
    "Answer",
    "BrowseAnswer",
    "BrowseRequest",
    "Call",
    "Corner",
    "EmbeddingFacts",
    "FileAnswer",
    "FileRequest",
    "FoundFile",
    "FoundPassage",
    "IndexFacts",
    "Notice",
    "NumberRequest",
    "Opened",
    "PassageAnswer",
    "Problem",
    "SearchAnswer",
    "SearchRequest",
    "Service",
    "Source",
    "SourceFacts",
    "StatusAnswer",
    "age_of",
    "corners",
    "embedding_client",
    "meant_name",
    "nothing_in",
    "parse_segment_id",
    "readable_age",
    "readable_size",
    "safe_line",
    "safe_name",
    "safe_text",
    "shortened",
]

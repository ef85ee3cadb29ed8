"""DigUp's ranking, from a question to hits in order. Pure: no file, socket, clock or randomness."""

from __future__ import annotations

from hermes_digup.ranking.answers import Hit, Matched, Query, Results
from hermes_digup.ranking.code import Definition, definition, first_line, identifier, name_of, summary
from hermes_digup.ranking.corpus import Corpus
from hermes_digup.ranking.excerpts import matches, snippet
from hermes_digup.ranking.hybrid import search
from hermes_digup.ranking.meaning import best_rows, sets_scale, standout
from hermes_digup.ranking.text import (
    canonically_equal,
    characters,
    excerpt,
    has_prefix,
    has_words,
    is_prefix_script,
    keyword_text,
    lowercased,
    normalized,
    unsplit_script,
)
from hermes_digup.ranking.words import code_query, folder_text, is_lookup, kind_hints, patterns, terms

__all__ = [
    "Corpus",
    "Definition",
    "Hit",
    "Matched",
    "Query",
    "Results",
    "best_rows",
    "canonically_equal",
    "characters",
    "code_query",
    "definition",
    "excerpt",
    "first_line",
    "folder_text",
    "has_prefix",
    "has_words",
    "identifier",
    "is_lookup",
    "is_prefix_script",
    "keyword_text",
    "kind_hints",
    "lowercased",
    "matches",
    "name_of",
    "normalized",
    "patterns",
    "search",
    "sets_scale",
    "snippet",
    "standout",
    "summary",
    "terms",
    "unsplit_script",
]

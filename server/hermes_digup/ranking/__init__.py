"""DigUp's ranking, from a question to hits in order. Pure: no file, socket, clock or randomness."""

from __future__ import annotations

from hermes_digup.ranking.corpus import Corpus, KeywordRow, PhraseRow
from hermes_digup.ranking.hybrid import Hit, Query, Results, search
from hermes_digup.ranking.text import unsplit_script

__all__ = ["Corpus", "Hit", "KeywordRow", "PhraseRow", "Query", "Results", "search", "unsplit_script"]

"""No answer grows beyond what an agent can take in: lists are cut, and say so."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

MOST_CHARS = 17_500  # with head and warnings an answer's text stays under 20,000


def fitting(items: Sequence[BaseModel]) -> int:
    """How many of the items fit into one answer; at least one, if there is one.

    Measured as JSON, which is longer than any text that a face makes of it.
    """
    room = MOST_CHARS
    for number, item in enumerate(items):
        room -= len(item.model_dump_json(exclude_none=True))
        if room < 0:
            return max(number, 1)
    return len(items)

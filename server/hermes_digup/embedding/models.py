"""Which model of a server may stand in when it has none of the name that is set."""

from __future__ import annotations

import re
from collections.abc import Iterable

# The first EmbeddingGemma (300m) lies in another space: its vectors would match nothing.
GEMMA_2 = re.compile(r"embedding[-_. ]?gemma[-_. ]?2(?!\d)", re.IGNORECASE)
QUANTISED = re.compile(
    r"\d[-_ ]?bit|(?<![a-z])i?q\d|int\d|fp[48](?!\d)|mxfp|nvfp|nf4|awq|gptq|dwq|gguf", re.IGNORECASE
)


def gemma_among(names: Iterable[str]) -> str | None:
    """The server's EmbeddingGemma 2, an unquantised one first; None when there is none."""
    found = [name for name in names if GEMMA_2.search(name)]
    return min(found, key=lambda name: (bool(QUANTISED.search(name)), len(name), name), default=None)

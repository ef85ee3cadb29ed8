"""One address of the model server in its own words: the OpenAI or the Ollama API, its key, its model."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hermes_digup.embedding.deadline import Deadline
from hermes_digup.embedding.models import gemma_among
from hermes_digup.embedding.refusals import Asked, Reply, content, fault, lacks_model, unusable
from hermes_digup.embedding.vectors import checked, ollama_rows, openai_rows
from hermes_digup.errors import BadVectorsError, EmbeddingError, WrongModelError

if TYPE_CHECKING:
    from hermes_digup.embedding.door import Door

log = logging.getLogger(__name__)
Api = Literal["openai", "ollama"]


@dataclass(frozen=True, slots=True)
class _Dialect:
    embed: str
    models: str
    rows: Callable[[object, int], list[object]]


DIALECTS = {
    "openai": _Dialect("/v1/embeddings", "/v1/models", openai_rows),
    "ollama": _Dialect("/api/embed", "/api/tags", ollama_rows),
}


class Address:
    """Asks for vectors at one address.

    Threads: any number may ask at once; the model found last is used by all.
    """

    def __init__(
        self, door: Door, *, where: str, api: Api, model: str, key: Callable[[], str | None]
    ) -> None:
        self.where, self.model = where, model
        self._door, self._dialect, self._asked, self._key = door, DIALECTS[api], model, key
        self._rested_until = 0.0
        self.last_error: EmbeddingError | None = None

    def rest(self, until: float, error: EmbeddingError) -> None:
        """Not to be asked before that moment."""
        self._rested_until, self.last_error = until, error

    def recovered(self) -> None:
        """It answered: whatever was wrong before is over."""
        self._rested_until, self.last_error = 0.0, None

    def is_resting(self, now: float) -> bool:
        return now < self._rested_until

    def close(self) -> None:
        self._door.close()

    def vectors(self, texts: Sequence[str], deadline: Deadline) -> NDArray[np.float32]:
        """Shapes: n texts in, (n, 768) float32 rows of unit length out. Raises: EmbeddingError."""
        model = self.model
        reply, asked = self._ask(texts, model, deadline)
        if lacks_model(reply):
            other = self._other_model(deadline)
            if other is not None and other != model:
                reply, asked = self._ask(texts, other, deadline)
                if reply.status == 200:
                    self._use(other)
        if reply.status != 200:
            raise fault(reply, asked)
        if error := unusable(reply, asked):
            raise error
        try:
            return checked(self._dialect.rows(content(reply), len(texts)))
        except (BadVectorsError, WrongModelError) as error:
            raise type(error)(error.what, where=self.where, fix=error.fix) from None

    def _ask(self, texts: Sequence[str], model: str, deadline: Deadline) -> tuple[Reply, Asked]:
        # ASCII, since a lone half of a surrogate pair cannot be written in UTF-8.
        body = json.dumps({"model": model, "input": list(texts)}).encode("ascii")
        reply, key = self._exchange(self._dialect.embed, body, deadline)
        return reply, Asked(self.where, model, key)

    def _exchange(self, path: str, body: bytes | None, deadline: Deadline) -> tuple[Reply, str | None]:
        """An answer, and the key it was asked with. A refused key is read again once: it may be new now."""
        from hermes_digup.embedding.door import Question

        key = self._key()
        reply = self._door.ask(Question(path, body, key), deadline)
        if reply.status == 401:
            newest = self._key()
            if newest != key:
                return self._door.ask(Question(path, body, newest), deadline), newest
        return reply, key

    def _other_model(self, deadline: Deadline) -> str | None:
        reply, _ = self._exchange(self._dialect.models, None, deadline)
        return gemma_among(_names(content(reply))) if reply.status == 200 else None

    def _use(self, model: str) -> None:
        if model != self.model:
            log.warning("embedding model not there: asked=%s used=%s", self._asked, model)
            self.model = model


def _names(answer: object) -> list[str]:
    told = answer if isinstance(answer, dict) else {}
    entries = told.get("data") or told.get("models") or []
    rows = [row for row in entries if isinstance(row, dict)] if isinstance(entries, list) else []
    names = [row.get("id") or row.get("name") for row in rows]
    return [name for name in names if isinstance(name, str) and name.isprintable() and len(name) <= 200]

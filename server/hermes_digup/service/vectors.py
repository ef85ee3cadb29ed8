"""The query's vector, or why there is none: a search then goes on by words alone and says so."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hermes_digup.embedding import Deadline, EmbeddingClient
from hermes_digup.errors import EmbeddingError, RefusedKeyError
from hermes_digup.service.answers import Notice
from hermes_digup.service.safe_text import safe_line, shortened
from hermes_digup.service.times import minute
from hermes_digup.settings import Settings

if TYPE_CHECKING:
    from hermes_digup.records import Vector

T = TypeVar("T")
STATUS_ASKS_S = 5.0
DOCTOR = "Next: hermes-digup doctor."
NOT_SET = "No model server is set (DIGUP_EMBED_URL), so only words were compared, not meaning."


@dataclass(frozen=True, slots=True)
class Asked:
    """A query vector, or none; and what to say about it."""

    vector: Vector | None
    notices: tuple[Notice, ...] = ()


class Vectors:
    """The embedding client of the settings in force; made anew when they change.

    Threads: any number may ask at once.
    """

    def __init__(
        self, current: Callable[..., Settings], make: Callable[[Settings], EmbeddingClient | None]
    ) -> None:
        self._current, self._make = current, make
        self._lock = threading.Lock()
        self._client: EmbeddingClient | None = None
        self._made_for: tuple[object, ...] | None = None
        self._told_of: str | None = None

    def client(self, *, now: bool = False) -> EmbeddingClient | None:
        """The client for the newest settings; None when no server is set."""
        settings = self._current(now=now)
        with self._lock:
            if self._made_for != _what_matters(settings):
                former, self._client = self._client, self._make(settings)
                self._made_for = _what_matters(settings)
                if former is not None:
                    former.close()
            return self._client

    def of(self, text: str, *, code: bool, deadline: Deadline) -> Asked:
        """The vector of a query. Never raises for what a server or a network does."""
        client = self.client()
        if client is None:
            return Asked(None, (Notice(code="words_only", message=NOT_SET, cause="not_set"),))
        try:
            vector = self._ask(client, lambda each: each.query_vector(text, code=code, deadline=deadline))
            return Asked(vector, self._other_model(client))
        except EmbeddingError as error:
            since = minute(client.state().failing_since)
            reason = shortened(safe_line(str(error)), 300)
            message = f"Only words were compared, not meaning: {reason} {DOCTOR}"
            return Asked(None, (Notice(code="words_only", message=message, cause=error.code, since=since),))

    def asked_now(self, deadline: Deadline) -> EmbeddingClient | None:
        """The client after one question, however it went: its state then tells how the server is now."""
        client = self.client()
        if client is not None:
            limit = deadline.within(STATUS_ASKS_S)
            with contextlib.suppress(EmbeddingError):
                self._ask(client, lambda each: each.embed(["status"], deadline=limit))
        return self.client()

    def _ask(self, client: EmbeddingClient, ask: Callable[[EmbeddingClient], T]) -> T:
        """The answer; asked again when the key was refused and a new one has been set meanwhile."""
        try:
            return ask(client)
        except RefusedKeyError:
            renewed = self.client(now=True)
            if renewed is None or renewed is client:
                raise
            return ask(renewed)

    def _other_model(self, client: EmbeddingClient) -> tuple[Notice, ...]:
        """That another model stands in for the one that is set; said once, as it changes little."""
        state = client.state()
        with self._lock:
            if not state.uses_other_model or self._told_of == state.model_used:
                return ()
            self._told_of = state.model_used
        asked, used = safe_line(state.model_asked), shortened(safe_line(state.model_used), 120)
        message = f"The model server has no model {asked}; its EmbeddingGemma 2 {used} is used."
        return (Notice(code="other_model", message=message),)

    def close(self) -> None:
        with self._lock:
            client, self._client, self._made_for = self._client, None, None
        if client is not None:
            client.close()


def _what_matters(settings: Settings) -> tuple[object, ...]:
    return (
        settings.embed_urls,
        settings.embed_api,
        settings.embed_model,
        settings.embed_api_key,
        settings.embed_timeout_s,
    )

"""The client of the model server: which address is asked, what is remembered, how it has been going.

First step of "a question travels to an answer". A fault here costs meaning, never an answer: whoever asks
goes on by words alone.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hermes_digup.embedding.address import Address, Api
from hermes_digup.embedding.deadline import Deadline
from hermes_digup.embedding.prompts import query_prompt
from hermes_digup.errors import EmbeddingError, UnreachableError
from hermes_digup.records import DIMENSIONS

if TYPE_CHECKING:
    import httpx

    from hermes_digup.records import Vector

TOTAL_S = 12.0  # for all addresses together, so that a search ends well within its own limit
REST_S = 30.0
REMEMBERED = 512
BATCH = 4  # texts in one request of `embed`: a slow machine still answers it in time


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """How asking has been going. Times are aware UTC; `url` answered last, or is the first one."""

    url: str
    model_asked: str
    model_used: str
    last_ok_at: datetime | None
    failing_since: datetime | None
    last_error: EmbeddingError | None
    last_ms: float | None

    @property
    def uses_other_model(self) -> bool:
        """Whether the server has no model of the name that is set, and its EmbeddingGemma 2 stands in."""
        return self.model_used != self.model_asked


class EmbeddingClient:
    """Turns texts into vectors at the first address that answers.

    Threads: any number may ask at once. A client that is closed still answers, and keeps nothing open.
    """

    def __init__(  # noqa: PLR0913 - one setting each, and two that let tests stand in for time and network
        self,
        urls: Sequence[str],
        *,
        api: Api = "openai",
        model: str,
        key: Callable[[], str | None] | str | None = None,
        timeout_s: float = 8.0,
        connect_s: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`urls`: base addresses, at least one, tried in order. `key`: a callable is asked each time."""
        if not urls:
            raise ValueError("a client needs an address")
        # Only here, so that nobody who asks no server loads httpx.
        from hermes_digup.embedding.door import Door, shown

        read_key = key if callable(key) else lambda: key
        bases = [url.rstrip("/").removesuffix("/v1") for url in urls]
        self._addresses = [
            Address(
                Door(base, connect_s=connect_s, timeout_s=timeout_s, transport=transport),
                where=shown(base),
                api=api,
                model=model,
                key=read_key,
            )
            for base in bases
        ]
        self._clock = clock
        self._lock = threading.Lock()
        self._users, self._is_closed = 0, False
        self._remembered: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._state = EmbeddingState(self._addresses[0].where, model, model, None, None, None, None)

    def query_vector(self, text: str, *, code: bool, deadline: Deadline | None = None) -> Vector:
        """The vector of a query, with DigUp's prompt for that index; the last 512 are remembered.

        Shapes: (768,) float32, unit length, read-only.
        Raises: EmbeddingError, within the deadline and 12 s.
        """
        prompt = query_prompt(text, code=code)
        with self._lock:
            place = (prompt, self._state.model_used)
            known = self._remembered.get(place)
            if known is not None:
                self._remembered.move_to_end(place)
                return known
        vector: Vector = self._vectors([prompt], deadline)[0]
        vector.setflags(write=False)
        with self._lock:
            self._remembered[(prompt, self._state.model_used)] = vector
            while len(self._remembered) > REMEMBERED:
                self._remembered.popitem(last=False)
        return vector

    def embed(self, texts: Sequence[str], *, deadline: Deadline | None = None) -> NDArray[np.float32]:
        """Vectors of texts exactly as they are given, a few to a request; nothing is remembered.

        Shapes: n texts in, (n, 768) float32 out. Raises: EmbeddingError.
        """
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        return np.vstack(
            [np.empty((0, DIMENSIONS), np.float32), *(self._vectors(batch, deadline) for batch in batches)]
        )

    def state(self) -> EmbeddingState:
        """How it went so far; asks nothing."""
        with self._lock:
            return self._state

    def close(self) -> None:
        """Closes all connections, once those who are at work have their answer."""
        with self._lock:
            self._is_closed = True
            busy = self._users > 0
        if not busy:
            self._close_addresses()

    def _close_addresses(self) -> None:
        for address in self._addresses:
            address.close()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                last = self._is_closed and self._users == 0
            if last:
                self._close_addresses()

    def _vectors(self, texts: Sequence[str], deadline: Deadline | None) -> NDArray[np.float32]:
        limit = deadline.within(TOTAL_S) if deadline else Deadline(TOTAL_S, self._clock)
        faults: list[EmbeddingError] = []
        with self._at_work():
            for address in self._addresses:
                if address.is_resting(self._clock()) or not limit.remaining_s():
                    continue
                began = self._clock()
                try:
                    rows = address.vectors(texts, limit)
                except EmbeddingError as error:
                    # With no time left it may be our haste, not the server: only a full wait proves it away.
                    if isinstance(error, UnreachableError) and limit.remaining_s():
                        address.rest(self._clock() + REST_S, error)
                    faults.append(error)
                else:
                    self._went_well(address, (self._clock() - began) * 1000)
                    return rows
        raise self._went_wrong(faults)

    def _went_well(self, address: Address, took_ms: float) -> None:
        address.recovered()
        with self._lock:
            asked, now = self._state.model_asked, datetime.now(timezone.utc)
            self._state = EmbeddingState(address.where, asked, address.model, now, None, None, took_ms)

    def _went_wrong(self, faults: Sequence[EmbeddingError]) -> EmbeddingError:
        """The most telling fault: of a server that answered before one that is away. Always a new object."""
        known = [*faults, *(address.last_error for address in self._addresses if address.last_error)]
        answered = [error for error in known if not isinstance(error, UnreachableError)]
        late = UnreachableError("There was no time left to ask the model server")
        error = (answered or known or [late])[0]
        with self._lock:
            state = self._state
            self._state = EmbeddingState(
                state.url,
                state.model_asked,
                state.model_used,
                state.last_ok_at,
                state.failing_since or datetime.now(timezone.utc),
                error,
                state.last_ms,
            )
        return type(error)(error.what, where=error.where, fix=error.fix)

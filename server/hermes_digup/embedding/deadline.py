"""How long a call may still take. One deadline goes through all its steps, instead of a time-out for each."""

from __future__ import annotations

import time
from collections.abc import Callable


class Deadline:
    """A moment after which nobody waits any more. Units: seconds of a clock that never jumps."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def remaining_s(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self._end - self._clock())

    def within(self, seconds: float) -> Deadline:
        """This deadline, or the one in so many seconds if that is earlier."""
        return Deadline(min(seconds, self.remaining_s()), self._clock)

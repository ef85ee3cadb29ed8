"""What one call may use: its time, and whether anybody still wants the answer."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from hermes_digup.embedding import Deadline
from hermes_digup.errors import BusyError

CALL_S = 15.0
RESERVE_S = 1.0  # for putting the answer together after the last look at the time


@dataclass(frozen=True, slots=True)
class Call:
    """One call's limits. `cancelled` is set when nobody waits; it is looked at between and within steps."""

    deadline: Deadline = field(default_factory=lambda: Deadline(CALL_S - RESERVE_S))
    cancelled: threading.Event = field(default_factory=threading.Event)

    def is_over(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.cancelled.is_set() or self.deadline.remaining_s() <= 0

    def check(self) -> None:
        """Raises: BusyError when the call is over."""
        if self.is_over():
            raise BusyError("The time of this call is over")

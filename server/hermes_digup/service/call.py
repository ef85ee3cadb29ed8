"""What one call may use: its time, and whether anybody still wants the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hermes_digup.embedding import Deadline

CALL_S = 15.0


def _nobody_cancels() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Call:
    """`check` raises when the call was cancelled; it is looked at between steps."""

    deadline: Deadline = field(default_factory=lambda: Deadline(CALL_S))
    check: Callable[[], None] = _nobody_cancels

"""How much of its proof a long test does: a part in every run, all of it when the environment has SOAK=1.

    SOAK=1 pytest tests/unit/ranking tests/unit/index tests/integration/publishing

Every loop that takes minutes at its full count asks here, so this one switch reaches them all.
"""

from __future__ import annotations

import os

SOAK = os.environ.get("SOAK", "") not in ("", "0")


def rounds(usual: int, soak: int) -> int:
    """How many rounds a loop does."""
    return soak if SOAK else usual

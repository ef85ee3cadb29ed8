"""Publishing: landing -> proved generation -> `current`. The Pi's half of a changed file's journey.

Only the command line and the live folder's own process publish; servers only watch `current`.
"""

from __future__ import annotations

from hermes_digup.publishing.layout import sources
from hermes_digup.publishing.live import LiveFolder
from hermes_digup.publishing.outcome import Outcome, SourceStatus, source_status
from hermes_digup.publishing.publisher import WAIT_S, publish, retire

__all__ = ["WAIT_S", "LiveFolder", "Outcome", "SourceStatus", "publish", "retire", "source_status", "sources"]

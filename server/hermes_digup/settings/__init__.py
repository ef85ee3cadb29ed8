"""config.env and the environment, as one typed object that is the same for every face."""

from __future__ import annotations

from hermes_digup.settings.model import KNOWN, Settings, load
from hermes_digup.settings.watch import Watched

__all__ = ["KNOWN", "Settings", "Watched", "load"]

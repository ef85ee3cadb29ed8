"""Times as answers show them: UTC, to the minute."""

from __future__ import annotations

from datetime import datetime, timezone

EARLIEST_UNIX, LATEST_UNIX = -62_135_596_800, 253_402_300_799


def day(unix: float) -> str:
    """The date of a file, or an empty text when its number is no date (a faulty row ends no search)."""
    if not EARLIEST_UNIX <= unix <= LATEST_UNIX:
        return ""
    return datetime.fromtimestamp(unix, timezone.utc).strftime("%Y-%m-%d")


def minute(moment: datetime | None) -> str | None:
    """A moment like 2026-11-30 14:05 UTC; None for none."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC") if moment else None

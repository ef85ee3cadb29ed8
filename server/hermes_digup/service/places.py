"""Where in a file: the page, the time, the lines, in words that people and models know."""

from __future__ import annotations


def place(segment_kind: str, loc: float | None, loc_end: float | None) -> str:
    """The place of a segment in words; empty for one that is the whole file.

    Units: pages, pieces, lines and cells from 1; times in seconds.
    """
    if loc is None:
        return "file name" if segment_kind == "name" else ""
    if segment_kind in ("audio", "frame"):
        until = f" to {clock_time(loc_end)}" if loc_end is not None and loc_end > loc else ""
        return f"{clock_time(loc)}{until}"
    word = {"page": "page", "page_image": "page", "lines": "line", "cells": "cell"}.get(segment_kind, "part")
    first = int(loc)
    if loc_end is not None and int(loc_end) > first:
        return f"{word}s {first}-{int(loc_end)}"
    return f"{word} {first}"


def clock_time(seconds: float) -> str:
    """Seconds as m:ss, or h:mm:ss from an hour on."""
    whole = max(0, int(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def readable_size(size_bytes: int) -> str:
    """A size as Finder would say it: 1,000 bytes to the kB."""
    amount = float(size_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit in ("bytes", "kB") else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def readable_age(seconds: float) -> str:
    """An age in its largest fitting unit: 40 minutes, 3 hours, 2 days."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return "less than a minute"

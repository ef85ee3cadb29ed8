"""What became of each laptop's newest delivery, and is there room for the next one?"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

from hermes_digup.doctor.report import SYNC_FIX, Row, brief
from hermes_digup.publishing import SourceStatus, source_status, sources
from hermes_digup.service import Opened, readable_age, readable_size
from hermes_digup.settings import Settings

LONG = timedelta(days=1)
LEAST_ROOM_BYTES = 200_000_000
# What helps against a refusal, by words of its reason; a fresh copy against all others.
HELP = {
    "disk is full": "Free disk space on this host, then: hermes-digup publish",
    "from the future": "Set the clocks of both hosts right, then: hermes-digup publish",
    "or newer is needed": f"Update DigUp on the laptop and let it finish. {SYNC_FIX}",
}


def delivery_rows(settings: Settings, now: datetime | None = None) -> Iterator[Row]:
    """One row for each laptop that delivers."""
    if settings.index_dir is not None:
        return
    for folder in sources(settings.sources_dir):
        yield _row(source_status(folder), now or datetime.now(timezone.utc))


def room_row(settings: Settings, opened: Opened, *, free_bytes: int | None = None) -> Row:
    """Whether the next copy will find room: as much as the largest in use takes, with its vectors."""
    place = settings.cache_dir if settings.index_dir else settings.sources_dir
    there = next(each for each in (place, *place.parents) if each.exists())
    free = shutil.disk_usage(there).free if free_bytes is None else free_bytes
    needed = max([LEAST_ROOM_BYTES, *(_size(each.main.path.parent) for each in opened.snapshots)])
    detail = f"{readable_size(free)} free, {readable_size(needed)} needed for the next copy"
    if free >= needed:
        return Row("disk", "ok", detail)
    return Row("disk", "warn", detail, f"Free {readable_size(needed - free)} on this host.")


def _row(status: SourceStatus, now: datetime) -> Row:
    name = f"delivery of {status.source}"
    age = now - status.since if status.since else timedelta()
    since = f" since {status.since:%Y-%m-%d %H:%M} UTC" if status.since else ""
    if status.state == "refused":
        fix = next((fix for words, fix in HELP.items() if words in status.reason), SYNC_FIX)
        return Row(name, "FAIL", f"refused{since}: {brief(status.reason)}", fix)
    if status.state == "incomplete":
        told = f"incomplete for {readable_age(age.total_seconds())}: {brief(status.reason)}"
        return Row(name, "FAIL" if age >= LONG else "warn", told, SYNC_FIX)
    if status.state == "retired":
        return Row(name, "skip", "retired: its laptop was taken out")
    if status.state == "waiting":
        return Row(name, "warn", "nothing was delivered yet", SYNC_FIX)
    if status.generation is None:
        fix = f"hermes-digup publish --source {status.source}"
        return Row(name, "FAIL", "published, and no copy is in use: the link current leads nowhere", fix)
    if status.note:
        return Row(name, "warn", brief(status.note), "Free disk space on this host.")
    return Row(name, "ok", status.state)


def _size(folder: Path) -> int:
    return sum(each.lstat().st_size for each in folder.iterdir())

"""What limits an answer: old copies, refused copies, newer schemas, files read in part. Each said once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TypeVar

from hermes_digup.index import Snapshot
from hermes_digup.records import File
from hermes_digup.service.answers import Answer, Notice
from hermes_digup.service.library import SETUP_HINT, Corner, Opened
from hermes_digup.service.places import readable_age
from hermes_digup.service.safe_text import safe_line, safe_name, shortened
from hermes_digup.service.times import minute

KNOWN_SCHEMA = 5
AnAnswer = TypeVar("AnAnswer", bound=Answer)


def notices_of(
    opened: Opened, only: Corner | None = None, *, read_in_part: Sequence[File] = ()
) -> list[Notice]:
    """Warnings about the sources an answer came from: all of them, or `only` the one that was read."""
    notices: list[Notice] = []
    for snapshot in opened.snapshots:
        if only is None or only.snapshot is snapshot:
            notices += _of_snapshot(snapshot, opened.stale_after)
            if snapshot.machine in opened.refused:
                reason = shortened(safe_line(opened.refused[snapshot.machine]), 300)
                notices.append(
                    Notice(
                        code="copy_refused",
                        message=f"A newer copy of {snapshot.machine} is not used: {reason}",
                    )
                )
    if only is None:
        notices += [
            Notice(
                code="source_unavailable",
                message=f"{each.machine} is not searched: {shortened(each.sentence, 300)}",
            )
            for each in opened.problems
            if not each.waiting
        ]
    return notices + [_part(file) for file in read_in_part if file.state in ("partial", "pending")]


def no_index(kind: type[AnAnswer], opened: Opened) -> AnAnswer:
    """The answer when there is nothing to search yet; ordinary, as the next sync mends it."""
    broken = [each for each in opened.problems if not each.waiting]
    if broken:
        message = f"No index can be searched. {shortened(safe_line(broken[0].sentence), 400)}"
    elif opened.problems:
        message = f"No index has arrived here yet. {opened.problems[0].hint}"
    else:
        message = f"{nothing_in(opened.sources_dir)}. {SETUP_HINT}"
    return kind(status="no_index", message=message)


def nothing_in(sources_dir: Path) -> str:
    """That no source is there, and when the folder is missing, which setting names it."""
    if sources_dir.is_dir():
        return f"No index has arrived in {sources_dir} yet"
    return f"There is no folder {sources_dir} (DIGUP_SOURCES_DIR), so no index has arrived"


def age_of(snapshot: Snapshot) -> timedelta | None:
    """Time since the machine last said that nothing is newer; None when it never did."""
    moment = snapshot.confirmed_at or snapshot.taken_at
    return datetime.now(timezone.utc) - moment if moment else None


def _of_snapshot(snapshot: Snapshot, stale_after: timedelta) -> list[Notice]:
    notices = []
    age = age_of(snapshot)
    if age is not None and age > stale_after:
        moment = minute(snapshot.confirmed_at or snapshot.taken_at)
        notices.append(
            Notice(
                code="stale",
                message=f"The copy of {snapshot.machine} is {readable_age(age.total_seconds())} old; "
                "newer changes are missing.",
                since=moment,
            )
        )
    if snapshot.main.schema > KNOWN_SCHEMA:
        notices.append(
            Notice(
                code="schema_newer",
                message=f"{snapshot.machine} runs a newer DigUp (schema {snapshot.main.schema}, known is "
                f"{KNOWN_SCHEMA}); results may be incomplete. Update hermes-digup.",
            )
        )
    return notices


def _part(file: File) -> Notice:
    name = shortened(safe_name(file.path.rsplit("/", 1)[-1]), 120)
    if file.state == "pending":
        return Notice(
            code="partially_indexed", message=f"{name} is waiting to be read; only its name is known."
        )
    to, end = file.info.get("read_to", ""), file.info.get("read_end", "")
    until = f" (to {shortened(safe_line(to), 12)} of {shortened(safe_line(end), 12)})" if to and end else ""
    return Notice(code="partially_indexed", message=f"{name} is read only in part so far{until}.")

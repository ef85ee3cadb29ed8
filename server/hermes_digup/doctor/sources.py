"""Is there an index, is it whole, how old is it, and who made its vectors?"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from hermes_digup.doctor.report import Row, State
from hermes_digup.errors import DigupError
from hermes_digup.publishing import source_status, sources
from hermes_digup.service import (
    KNOWN_SCHEMA,
    Corner,
    Opened,
    age_of,
    corners,
    readable_age,
    safe_line,
    shortened,
)
from hermes_digup.settings import Settings

SYNC_FIX = "On the laptop: digup-sync.sh -v, or: ansible-playbook playbooks/sync_now.yml"
SETUP_FIX = "ansible-playbook site.yml"


def setting_rows(settings: Settings) -> Iterator[Row]:
    """The settings file: unknown keys, and whether others can read its secrets."""
    path = settings.config_path
    for sentence in settings.unknown:
        yield Row("settings", "warn", sentence, f"Correct it in {path.name}.")
    if settings.embed_api_key and _others_may_read(path):
        yield Row(
            "settings", "warn", f"{path} can be read by other users and may hold a key", f"chmod 600 {path}"
        )
    elif not settings.unknown:
        yield Row("settings", "ok", str(path) if path.exists() else f"defaults (no {path})")


def source_rows(settings: Settings, opened: Opened) -> Iterator[Row]:
    """A few rows for each source, also for those that cannot answer."""
    if not opened.snapshots and not opened.problems:
        yield Row("index", "FAIL", f"nothing has arrived yet in {settings.sources_dir}", SETUP_FIX)
    for problem in opened.problems:
        state: State = "warn" if problem.waiting and opened.snapshots else "FAIL"
        yield Row(f"index of {problem.machine}", state, _short(problem.sentence), SYNC_FIX)
    for corner in corners(opened):
        yield _index_row(corner)
        if not corner.database.is_code:
            yield _age_row(settings, corner)
            yield _maker_row(corner)
            refused = opened.refused.get(corner.machine)
            if refused:
                yield Row(f"newer copy of {corner.machine}", "warn", f"refused: {_short(refused)}", SYNC_FIX)


def delivery_rows(settings: Settings) -> Iterator[Row]:
    """What became of the newest delivery of each laptop."""
    if settings.index_dir is not None:
        return
    for folder in sources(settings.sources_dir):
        status = source_status(folder)
        name, since = (
            f"delivery of {folder.name}",
            f" since {status.since:%Y-%m-%d %H:%M} UTC" if status.since else "",
        )
        if status.state == "refused":
            yield Row(name, "FAIL", f"refused{since}: {_short(status.reason)}", SYNC_FIX)
        elif status.state == "incomplete":
            yield Row(name, "warn", f"incomplete{since}: {_short(status.reason)}", SYNC_FIX)
        elif status.state == "retired":
            yield Row(name, "skip", "retired: its laptop was taken out")
        elif status.note:
            yield Row(name, "warn", _short(status.note), "Free some disk space on this host.")
        else:
            yield Row(name, "ok", status.state)


def _index_row(corner: Corner) -> Row:
    name = f"{'code index' if corner.database.is_code else 'index'} of {corner.machine}"
    database = corner.database
    try:
        counts = database.counts()
    except DigupError as error:
        return Row(name, "FAIL", _short(str(error)), SYNC_FIX)
    files = sum(counts.files_by_kind.values())
    facts = f"{files} files, {counts.vectors} vectors ({database.vectors_from}), schema {database.schema}"
    if not files:
        return Row(name, "warn", f"{facts}: DigUp has indexed nothing yet", "Open DigUp on the laptop.")
    if database.schema > KNOWN_SCHEMA:
        return Row(
            name, "warn", f"{facts}: newer than {KNOWN_SCHEMA}", "Update hermes-digup: git pull, site.yml"
        )
    if database.vectors_from != "packed":
        return Row(name, "warn", f"{facts}: vectors are read row by row", "hermes-digup publish --force")
    return Row(name, "ok", facts)


def _age_row(settings: Settings, corner: Corner) -> Row:
    name = f"last synced, {corner.machine}"
    age = age_of(corner.snapshot)
    if age is None:
        return Row(name, "warn", "unknown: no time came with the copy", SYNC_FIX)
    words = f"{readable_age(age.total_seconds())} ago"
    if age.total_seconds() > settings.stale_hours * 3600:
        return Row(name, "warn", f"{words}; the laptop may be asleep or away", SYNC_FIX)
    return Row(name, "ok", words)


def _maker_row(corner: Corner) -> Row:
    name = f"vectors of {corner.machine}"
    source = corner.database.vector_source
    if source is None:
        return Row(
            name, "warn", "the index does not say what made them", "Let DigUp index a file, then sync."
        )
    return Row(name, "ok", f"made by {shortened(safe_line(source), 120)}")


def _others_may_read(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False


def _short(text: str) -> str:
    return shortened(safe_line(text), 300)

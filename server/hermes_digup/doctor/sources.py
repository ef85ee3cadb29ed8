"""Is there an index, is it whole, how old is it, and who made its vectors?"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_digup.doctor.report import SYNC_FIX, Row, State, brief
from hermes_digup.errors import DigupError
from hermes_digup.service import (
    KNOWN_SCHEMA,
    PENDING_SHARE,
    Corner,
    Opened,
    Problem,
    age_of,
    corners,
    nothing_in,
    readable_age,
    safe_line,
    shortened,
)
from hermes_digup.settings import Settings

SETUP_FIX = "ansible-playbook site.yml"


def setting_rows(settings: Settings) -> Iterator[Row]:
    """The settings file: unknown keys, and whether others can read its secrets."""
    path = settings.config_path
    for sentence in settings.unknown:
        yield Row("settings", "warn", sentence, "Correct that name, or take it out.")
    if (settings.embed_api_key or settings.http_token) and _others_may_read(path):
        told = f"{path} can be read by other users and may hold a key"
        yield Row("settings", "FAIL", told, f"chmod 600 {shlex.quote(str(path))}")
    elif not settings.unknown:
        yield Row("settings", "ok", str(path) if path.exists() else f"defaults (no {path})")


def source_rows(settings: Settings, opened: Opened, deliveries: Sequence[Row]) -> Iterator[Row]:
    """A few rows for each source, also for those that cannot answer. What a delivery tells is left out."""
    if not opened.snapshots and not opened.problems:
        yield Row("index", "FAIL", nothing_in(settings.sources_dir), SETUP_FIX)
    for problem in opened.problems:
        yield _problem_row(problem, deliveries, others_answer=bool(opened.snapshots))
    for corner in corners(opened):
        yield _index_row(corner)
        if not corner.database.is_code:
            yield _age_row(settings, corner)
            yield _maker_row(corner)
            refused = _without_fix(opened.refused.get(corner.machine, ""))
            if refused and not any(refused in row.detail for row in deliveries):
                yield Row(f"newer copy of {corner.machine}", "warn", f"refused: {refused}", SYNC_FIX)


def _problem_row(problem: Problem, deliveries: Sequence[Row], *, others_answer: bool) -> Row:
    name = f"index of {problem.machine}"
    if any(row.state == "FAIL" and row.check == f"delivery of {problem.machine}" for row in deliveries):
        return Row(name, "skip", "no copy is in use: see its delivery")
    state: State = "warn" if problem.waiting and others_answer else "FAIL"
    return Row(name, state, _without_fix(problem.sentence), SYNC_FIX)


def _without_fix(sentence: str) -> str:
    """A fault without the step that it proposes, which has a place of its own here."""
    return brief(sentence.partition(" Next: ")[0])


def _index_row(corner: Corner) -> Row:
    name = f"{'code index' if corner.database.is_code else 'index'} of {corner.machine}"
    database = corner.database
    try:
        counts = database.counts()
    except DigupError as error:
        return Row(name, "FAIL", brief(str(error)), SYNC_FIX)
    files = sum(counts.files_by_kind.values())
    facts = f"{files} files, {counts.vectors} vectors ({database.vectors_from}), schema {database.schema}"
    if not files:
        return Row(name, "warn", f"{facts}: DigUp has indexed nothing yet", "Open DigUp on the laptop.")
    if database.schema > KNOWN_SCHEMA:
        fix = "Update hermes-digup: git pull, then ansible-playbook site.yml"
        return Row(name, "warn", f"{facts}: newer than {KNOWN_SCHEMA}, the newest known here", fix)
    waiting = counts.files_by_state.get("pending", 0)
    if waiting >= PENDING_SHARE * files:
        told = f"{facts}: DigUp has still {waiting} of {files} files to read"
        return Row(name, "warn", told, "Keep DigUp open on the laptop until it has read them all.")
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

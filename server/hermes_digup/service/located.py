"""A file, found in one of the indexes; and why a file may have no text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hermes_digup.records import File
from hermes_digup.service.answers import Answer, FoundFile, Notice
from hermes_digup.service.library import Corner, Opened
from hermes_digup.service.safe_text import safe_name, shortened
from hermes_digup.service.times import day

AnAnswer = TypeVar("AnAnswer", bound=Answer)
LONGEST_TEXT = 19_000  # an answer stays under 20,000 characters with its head
NO_TEXT_OF = {
    "audio": "sound has no text in the index, only its meaning",
    "video": "film has no text in the index, only its meaning",
    "image": "a picture has no text in the index, only its meaning",
    "screenshot": "no text was recognised in this screenshot",
    "pdf": "DigUp has taken no text from this PDF, or has not read it yet",
}


@dataclass(frozen=True, slots=True)
class Located:
    """A file and the index it was found in."""

    corner: Corner
    file: File


def corners(opened: Opened, *, machine: str = "", code: bool | None = None) -> list[Corner]:
    """Every index of every source, main indexes first; of one machine, or one sort, if that is wanted."""
    wanted = [each for each in opened.snapshots if not machine or each.machine == machine]
    every = [Corner(each, each.main) for each in wanted]
    every += [Corner(each, each.code) for each in wanted if each.code is not None]
    return [each for each in every if code is None or each.database.is_code == code]


def machine_fault(opened: Opened, machine: str) -> str:
    """Why no source is meant by this name; empty when one is, or none was named."""
    known = sorted(each.machine for each in opened.snapshots)
    if not machine or machine in known:
        return ""
    return f"machine: there is no {shortened(safe_name(machine), 80)!r}. Valid: {', '.join(known)}."


def told_of_others(answer: AnAnswer, what: str, found: Sequence[Corner]) -> AnAnswer:
    """The answer from the first of several indexes that have what was asked for, saying which others do."""
    if len(found) < 2:
        return answer
    names = [f"{each.machine}, {'code' if each.database.is_code else 'main'} index" for each in found]
    note = f"The same {what} is also in: {'; '.join(names[1:])}. This is {names[0]}."
    notice = Notice(code="several_matches", message=note)
    return answer.model_copy(update={"warnings": [*answer.warnings, notice]})


def reason_for_no_text(file: File) -> str:
    if file.state == "pending":
        return "DigUp has not read this file yet, only its name"
    if file.state in ("failed", "skipped"):
        detail = f": {shortened(safe_name(file.detail), 160)}" if file.detail else ""
        return f"DigUp {'could not read' if file.state == 'failed' else 'left out'} this file{detail}"
    return NO_TEXT_OF.get(file.kind, "DigUp has taken no text from this file")


def no_text(file: File) -> str:
    """`reason_for_no_text` as a sentence of its own; names in it keep their capitals."""
    reason = reason_for_no_text(file)
    return f"{reason[:1].upper()}{reason[1:]}."


def shown_kind(file: File) -> str:
    """A file's kind as stored, which may be any words in a newer or a forged index."""
    return shortened(safe_name(file.kind), 40)


def found_file(machine: str, file: File) -> FoundFile:
    """A file as listings show it."""
    return FoundFile(
        machine=machine,
        path=safe_name(file.path),
        kind=shown_kind(file),
        modified=day(file.modified_unix),
        size_bytes=file.size,
    )

"""A file, found in one of the indexes; and why a file may have no text."""

from __future__ import annotations

from dataclasses import dataclass

from hermes_digup.records import File
from hermes_digup.service.answers import FoundFile
from hermes_digup.service.library import Corner, Opened
from hermes_digup.service.safe_text import safe_name, shortened
from hermes_digup.service.times import day

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


def corners(opened: Opened, *, machine: str = "") -> list[Corner]:
    """Every index of every source, main indexes first."""
    wanted = [each for each in opened.snapshots if not machine or each.machine == machine]
    main = [Corner(each, each.main) for each in wanted]
    return main + [Corner(each, each.code) for each in wanted if each.code is not None]


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

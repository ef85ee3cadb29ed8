"""read_file: all text that DigUp took from a file, in order, one stretch at a time."""

from __future__ import annotations

import difflib
import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes_digup.service.answers import FileAnswer
from hermes_digup.service.folders import files_in
from hermes_digup.service.library import Corner, Opened
from hermes_digup.service.located import (
    LONGEST_TEXT,
    Located,
    corners,
    machine_fault,
    no_text,
    shown_kind,
    told_of_others,
)
from hermes_digup.service.notices import no_index, notices_of
from hermes_digup.service.reading import read_through
from hermes_digup.service.safe_text import meant_name, safe_name, safe_text, shortened
from hermes_digup.service.segment_ids import parse_segment_id

PATH_SHOWN = 400
SIMILAR, NAMES_COMPARED = 3, 50
ALIKE, LONG_ENOUGH = 0.6, 4
WORDS = re.compile(r"\w+")
TEXTS_KEPT = 2  # up to some ten megabytes each


@dataclass(frozen=True, slots=True)
class FileRequest:
    """Which file, and which stretch of its text. `code` None: whichever index has it, the main one first."""

    path: str
    offset: int = 0
    max_chars: int = 6000
    machine: str = ""
    code: bool | None = None


class LastTexts:
    """The texts read last, as a long one is asked for page by page. A generation's files never change.

    Threads: safe.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Path, int], str] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, located: Located) -> str:
        """The whole text of a file, harmless, in reading order; empty when there is none."""
        database = located.corner.database
        key = (database.path, located.file.id)
        with self._lock:
            known = self._kept.get(key)
        if known is not None:
            return known
        text = safe_text(read_through(database.passages(located.file.id)))
        with self._lock:
            self._kept[key] = text
            while len(self._kept) > TEXTS_KEPT:
                self._kept.popitem(last=False)
        return text


def read_file(opened: Opened, texts: LastTexts, request: FileRequest) -> FileAnswer:
    """All text of a file in order, one stretch at a time."""
    if not opened.snapshots:
        return no_index(FileAnswer, opened)
    if fault := machine_fault(opened, request.machine):
        return FileAnswer(status="invalid_argument", message=fault)
    places = corners(opened, machine=request.machine, code=request.code)
    found = _located(places, request.path)
    if not found:
        return _no_such_file(places, request.path)
    answer = _stretch(opened, found[0], texts.of(found[0]), request)
    return told_of_others(answer, "path", [each.corner for each in found])


def _located(places: Sequence[Corner], path: str) -> list[Located]:
    """The file in every index that has it: as written, as unescaped, from the home folder, or by name."""
    found: list[Located] = []
    for corner in places:
        for spelling in _spellings(path, corner.snapshot.home):
            file = corner.database.file(spelling)
            if file is not None:
                found.append(Located(corner, file))
                break
    if found or "/" in path.strip("/"):
        return found
    named = [
        Located(corner, file)
        for corner in places
        for file in corner.database.browse(name_contains=path, limit=20)[0]
        if _same_name(file.path, path)
    ]
    return named if len({each.file.path for each in named}) == 1 else []


def _spellings(path: str, home: str | None) -> list[str]:
    written = [path, meant_name(path), path.strip().strip("`'\"")]
    absolute = [
        (home or "~") + each[1:] if each == "~" or each.startswith("~/") else each for each in written
    ]
    return list(dict.fromkeys(each for each in absolute if each.startswith("/")))


def _same_name(path: str, name: str) -> bool:
    last = unicodedata.normalize("NFC", path.rsplit("/", 1)[-1])
    return last.casefold() == unicodedata.normalize("NFC", name.strip("/ ")).casefold()


def _no_such_file(places: Sequence[Corner], path: str) -> FileAnswer:
    if parse_segment_id(path):
        message = "This is the id of a hit, not a path: read_passage reads it."
        return FileAnswer(status="invalid_argument", message=message)
    if path.startswith(("/", "~/")) and path.strip("/") and (count := files_in(places, path)):
        message = f"This is a folder with {count} indexed files: browse_files lists them."
        return FileAnswer(status="nothing_found", message=message)
    similar = [
        shortened(f"{safe_name(file.path)} on {corner.machine}", PATH_SHOWN)
        for corner in places
        for file in corner.database.browse(name_contains=_stem(path), limit=NAMES_COMPARED)[0]
        if _is_alike(_stem(path), _stem(file.path))
    ]
    near = f" Similar: {'; '.join(similar[:SIMILAR])}." if similar else ""
    return FileAnswer(
        status="nothing_found",
        message=f"No indexed file has this path.{near} Use a path from a search or from browse_files.",
    )


def _is_alike(asked: str, name: str) -> bool:
    """Whether a name may be the one that was meant: nearly the same, or all words of what was asked for."""
    if difflib.SequenceMatcher(None, asked, name).ratio() >= ALIKE:
        return True
    return len(asked) >= LONG_ENOUGH and set(WORDS.findall(asked)) <= set(WORDS.findall(name))


def _stem(path: str) -> str:
    """A file's name without its folders and ending, as people compare names."""
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return unicodedata.normalize("NFC", name.rpartition(".")[0] or name).casefold()


def _stretch(opened: Opened, located: Located, text: str, request: FileRequest) -> FileAnswer:
    corner, file = located.corner, located.file
    known = {
        "machine": corner.machine,
        "path": safe_name(file.path),
        "kind": shown_kind(file),
        "code": corner.database.is_code,
    }
    if not text:
        return FileAnswer.model_validate({"status": "no_text", "message": no_text(file), **known})
    warnings = notices_of(opened, corner, read_in_part=[file])
    total = len(text)
    if request.offset >= total:
        return FileAnswer.model_validate(
            {
                "status": "end_of_file",
                "message": f"offset {request.offset} is past the end: the text has {total} characters.",
                "offset": request.offset,
                "total_chars": total,
                "warnings": warnings,
                **known,
            }
        )
    end = request.offset + min(request.max_chars, LONGEST_TEXT)
    return FileAnswer.model_validate(
        {
            "status": "ok",
            "text": text[request.offset : end],
            "offset": request.offset,
            "next_offset": end if end < total else None,
            "total_chars": total,
            "warnings": warnings,
            **known,
        }
    )

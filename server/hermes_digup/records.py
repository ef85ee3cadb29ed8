"""DigUp's words as types: what a file, a segment and a passage are. Both journeys speak in them.

Nothing here reads or decides; numpy is named for type checkers only, so that `--version` stays light.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]  # (768,), unit length

DIMENSIONS = 768

# What DigUp's own filter knows. Files of the code index are all of kind "code".
KINDS = ("screenshot", "image", "pdf", "doc", "audio", "video")
SEGMENT_KINDS = (
    "name", "image", "ocr", "page", "page_image", "chunk", "audio", "frame", "lines", "cells",
)  # fmt: skip
MODALITIES = ("none", "text", "image", "audio")


@dataclass(frozen=True, slots=True)
class File:
    """One file that DigUp knows, on the machine that DigUp runs on.

    Units: size in bytes; modified_unix in seconds since 1970. `path` is text of another machine, in any
    Unicode spelling; `kind` and `state` are as stored, also when they are unknown to us. `info` is empty when
    it is not an object of strings.
    """

    id: int
    path: str
    kind: str
    state: str
    size: int
    modified_unix: float
    info: Mapping[str, str]
    detail: str | None


@dataclass(frozen=True, slots=True)
class Segment:
    """One searchable part of a file: a page, a piece of text, a frame, a stretch of code, or its name.

    Units: loc and loc_end are pages, pieces, lines or cells from 1, or seconds, depending on `kind`.
    """

    id: int
    file: int
    kind: str
    modality: str
    loc: float | None
    loc_end: float | None
    excerpt: str | None


@dataclass(frozen=True, slots=True)
class Passage(Segment):
    """A segment with its text as written; None when DigUp kept no text for it (pictures, sound, film)."""

    text: str | None


class KeywordRow(NamedTuple):
    """A segment whose text matches a query."""

    file: int
    segment: int


class PhraseRow(NamedTuple):
    """A segment of one file that holds a phrase, with its text as written."""

    segment: int
    loc: float | None
    text: str


@dataclass(frozen=True, slots=True)
class FolderFilter:
    """A folder whose files alone are wanted. Made by `folder_filter`, compared by canonical equivalence.

    `prefix` is in composed form (NFC) and ends in one slash.
    """

    prefix: str

    def contains(self, path: str) -> bool:
        """Whether a file with this path lies inside the folder, at any depth."""
        return unicodedata.normalize("NFC", path).startswith(self.prefix)


def folder_filter(text: str | None, home: str | None) -> FolderFilter | None:
    """The folder a person or a model meant; None (no filter) when the text is empty.

    `~` is the home folder of the machine the files are on. A path that does not start at the root is taken
    from that home. Trailing and doubled slashes, `.` and `..` mean what they mean in a shell.
    """
    wanted = unicodedata.normalize("NFC", (text or "").strip())
    if not wanted:
        return None
    if wanted == "~" or wanted.startswith("~/"):
        wanted = (home or "~") + wanted[1:]
    elif not wanted.startswith("/"):
        wanted = (home or "") + "/" + wanted
    parts: list[str] = []
    for part in unicodedata.normalize("NFC", wanted).split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return FolderFilter("/" + "".join(part + "/" for part in parts))


@dataclass(frozen=True, slots=True)
class VectorRows:
    """What ranking needs to know about each stored vector, as columns, in order of (file, segment).

    Shapes: all (n,), the n of `Corpus.cosines`. `first` (m,) is the first row of each of the m files.
    """

    segment: NDArray[np.int64]
    file: NDArray[np.int64]
    first: NDArray[np.int64]
    file_kind: NDArray[np.int8]  # place in KINDS; -1: any other
    modality: NDArray[np.int8]  # place in MODALITIES; an unknown one is 0
    is_chunk: NDArray[np.bool_]
    place: NDArray[np.int32]  # loc without its fraction; none is 0
    pages: NDArray[np.int32]  # `pages` of the file's info; none is 0

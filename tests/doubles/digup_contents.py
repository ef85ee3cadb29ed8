"""What DigUp finds in a file, from a small text that stands for it: its segments to be, and its info."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from tests.doubles import digup_text

KINDS = ("screenshot", "image", "pdf", "doc", "audio", "video", "code")
RENDERED_BELOW = 200  # a PDF page with less text than this is looked at as a picture


@dataclass(frozen=True)
class Sample:
    """One file as the demo and the tests describe it. Units: modified is seconds since 1970."""

    path: str
    kind: str
    parts: tuple[str, ...] = ()
    modified: float = 1_750_000_000.0
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Piece:
    """One segment to be. `meaning` is what its vector is made of, prompt included; None leaves it without."""

    kind: str
    modality: str
    meaning: str | None
    loc: float | None = None
    loc_end: float | None = None
    excerpt: str | None = None
    text: str | None = None


def read_sample(text: str) -> Sample:
    """Raises: ValueError when the head does not say path and a kind of DigUp's."""
    head, line, body = text.partition("\n---\n")
    fields = {name: value for name, _, value in (row.partition(": ") for row in head.splitlines())}
    if not line or "path" not in fields or fields.get("kind") not in KINDS:
        raise ValueError(f"not a sample: {text[:60]!r}")
    day = datetime.fromisoformat(fields.pop("modified", "2025-06-15T15:06:40").replace("Z", ""))
    parts = tuple(part.strip("\n") for part in body.split("\f"))
    modified = day.replace(tzinfo=timezone.utc).timestamp()
    return Sample(fields.pop("path"), fields.pop("kind"), parts, modified, fields)


def read_samples(folder: Path) -> list[Sample]:
    """All samples below a folder, by path."""
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("*.txt"))
    return sorted(map(read_sample, texts), key=lambda sample: sample.path)


def contents(sample: Sample, home: str) -> tuple[list[Piece], dict[str, str]]:
    """The segments of a file but its name, in the order DigUp adds them, and its info."""
    if sample.kind == "code":
        return _code(sample, home)
    pictures = {"screenshot": _picture, "image": _picture, "video": _video}
    return ({"pdf": _pdf, "doc": _doc, "audio": _audio} | pictures)[sample.kind](sample)


def _prompt(title: str | None, text: str) -> str:
    return f"title: {title or 'none'} | text: {text}"


def _stem(sample: Sample) -> str:
    name = sample.path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _pdf(sample: Sample) -> tuple[list[Piece], dict[str, str]]:
    title = sample.fields.get("title", _stem(sample))
    garbled = {int(page) for page in sample.fields.get("garbled", "").split()}
    glyphs, texts, rendered = [], [], []
    for page, text in enumerate(sample.parts[: _read_to(sample)], 1):
        meaning = _prompt(title, text[:4000]) if digup_text.has_words(text) else None
        if page in garbled:
            glyphs.append(Piece("page", "text", meaning, page))
            rendered.append(Piece("page_image", "image", _prompt(None, text), page))
        elif len(text) < RENDERED_BELOW:
            shown, line = _prompt(None, sample.fields.get("shows", text)), digup_text.excerpt(text) or None
            rendered.append(Piece("page_image", "image", shown, page, None, line, text))
        else:
            texts.append(Piece("page", "text", meaning, page, None, digup_text.excerpt(text), text))
    info = {"pages": str(len(sample.parts)), "scanned_pages": str(len(rendered))}
    return [*glyphs, *texts, *rendered], info | _reading(sample, len(sample.parts))


def _doc(sample: Sample) -> tuple[list[Piece], dict[str, str]]:
    whole = "\n\n".join(sample.parts)
    texts = digup_text.pieces(whole)
    pieces = [
        Piece(
            "chunk",
            "text",
            _prompt(_stem(sample), text) if digup_text.has_words(text) else None,
            number,
            excerpt=digup_text.excerpt(text),
            text=text,
        )
        for number, text in enumerate(texts[: _read_to(sample)], 1)
    ]
    info = {"chunks": str(len(texts)), "chars": str(sum(1 for _ in digup_text.characters(whole)))}
    return pieces, info | _reading(sample, len(texts))


def _read_to(sample: Sample) -> int | None:
    return int(sample.fields["read_to"]) if "read_to" in sample.fields else None


def _reading(sample: Sample, end: int) -> dict[str, str]:
    return {"read_to": sample.fields["read_to"], "read_end": str(end)} if "read_to" in sample.fields else {}


def _picture(sample: Sample) -> tuple[list[Piece], dict[str, str]]:
    text = sample.parts[0]
    info = {"width": "1512", "height": "982"}
    picture = Piece("image", "image", _prompt(None, sample.fields.get("shows", text)))
    if sample.kind == "image":
        taken = datetime.fromtimestamp(sample.modified, timezone.utc)
        return [picture], info | {"taken": f"{taken:%Y:%m:%d %H:%M:%S}"}
    ocr = Piece("ocr", "none", None, excerpt=digup_text.excerpt(text), text=text)
    return [picture, *([ocr] if text else [])], info | {"ocr_chars": str(len(text))}


def _audio(sample: Sample) -> tuple[list[Piece], dict[str, str]]:
    duration = float(sample.fields.get("duration", 25 * len(sample.parts) + 5))
    pieces = [
        Piece("audio", "audio", _prompt(None, words), 25.0 * place, min(25.0 * place + 30, duration))
        for place, words in enumerate(sample.parts)
    ]
    return pieces, {"duration": f"{duration:.1f}"}


def _video(sample: Sample) -> tuple[list[Piece], dict[str, str]]:
    duration = float(sample.fields.get("duration", 3 * len(sample.parts)))
    times = [duration * place / len(sample.parts) for place in range(len(sample.parts) + 1)]
    pieces = [
        Piece("frame", "image", _prompt(None, words), *times[place : place + 2])
        for place, words in enumerate(sample.parts)
    ]
    return pieces, {"duration": f"{duration:.1f}", "frames": str(len(pieces)), "sound_windows": "0"}


def _code(sample: Sample, home: str) -> tuple[list[Piece], dict[str, str]]:
    notebook = sample.path.endswith(".ipynb")
    cells, text = list(sample.parts), "\n\f\n".join(sample.parts)
    found = digup_text.cell_groups(cells) if notebook else digup_text.stretches(text)
    repo = sample.fields.get("repo")
    title = "/".join(sample.path.split("/")[repo.count("/") if repo else -2 :])
    pieces = [
        Piece(
            "cells" if notebook else "lines",
            "text",
            _prompt(title, stretch) if digup_text.has_words(stretch) else None,
            first,
            last,
            digup_text.code_excerpt(stretch),
            stretch,
        )
        for first, last, stretch in found
    ]
    info = {"lines": str(sum(part.count("\n") + 1 for part in cells))}
    info |= {"cells": str(len(cells))} if notebook else {}
    return pieces, info | ({"repo": f"{home}/{repo}"} if repo else {})

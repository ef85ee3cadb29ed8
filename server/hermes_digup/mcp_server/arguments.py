"""Sloppy arguments, understood: what an agent clearly meant is accepted and noted, the rest is explained.

Never an error: Hermes blocks the whole server after three of them.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermes_digup.mcp_server.definitions import Arguments, Definition
from hermes_digup.service import Notice, safe_line, shortened

# Names that other search tools use for the same thing. A tool's own argument is never renamed.
OTHER_NAMES = {
    "query": ("q", "text", "search", "question", "keywords", "pattern", "queries", "search_query"),
    "limit": (
        "max_results",
        "top_k",
        "k",
        "n",
        "count",
        "num_results",
        "max",
        "size",
        "page_size",
        "results",
    ),
    "kinds": ("kind", "type", "types", "file_type", "file_types", "filter"),
    "folder": ("dir", "directory", "path", "folder_path", "in_folder", "root", "folders"),
    "segment_id": ("id", "segment", "passage_id", "passage", "hit_id", "segmentid"),
    "path": ("file", "file_path", "filepath", "filename", "full_path"),
    "context": ("neighbours", "neighbors", "around", "window"),
    "max_chars": ("max_length", "length", "chars", "max_characters", "limit"),
    "offset": ("start", "from", "skip", "next_offset", "cursor"),
    "name_contains": ("name", "contains", "filename", "query", "q"),
    "machine": ("host", "source", "device"),
}
KIND_WORDS = {
    "screenshot": "screenshot screenshots screen capture",
    "image": "image images photo photos picture pictures img jpg jpeg png heic",
    "pdf": "pdf pdfs",
    "doc": "doc docs document documents text texts txt note notes markdown md word docx",
    "audio": "audio sound sounds music recording recordings mp3 m4a voice",
    "video": "video videos film films movie movies mp4 mov clip",
}
ALL_KINDS = frozenset({"all", "any", "*", "everything", "file", "files"})
LONGEST_NAME = 4096  # macOS takes paths of 1,024 bytes
YES, NO = frozenset({"true", "yes", "1", "on"}), frozenset({"false", "no", "0", "off"})


class NotUnderstoodError(ValueError):
    """An argument whose meaning is not clear. The text says which, what is valid, and what to do."""


@dataclass(frozen=True, slots=True)
class Understood:
    """Arguments as they were meant, and what had to be put right."""

    arguments: Arguments
    notices: tuple[Notice, ...]


def understand(definition: Definition, given: Mapping[str, Any]) -> Understood:
    """The arguments of a call as they were meant.

    Raises: NotUnderstoodError, in a sentence that helps.
    """
    properties: dict[str, dict[str, Any]] = definition.input_schema()["properties"]
    notes: list[str] = []
    values: dict[str, Any] = {}
    for name, value in _by_own_names(properties, given, notes).items():
        values[name] = _meant(name, value, properties[name], notes)
    missing = [name for name in definition.input_schema().get("required", []) if not values.get(name)]
    if missing:
        about = properties[missing[0]]["description"]
        raise NotUnderstoodError(
            f"{missing[0]} is missing. {missing[0]}: {about} Call {definition.name} again with it."
        )
    notices = tuple(Notice(code="argument_adjusted", message=note) for note in notes)
    return Understood(definition.arguments.model_validate(values), notices)


def _by_own_names(
    properties: Mapping[str, Any], given: Mapping[str, Any], notes: list[str]
) -> dict[str, Any]:
    filled = {name: value for name, value in given.items() if value not in (None, "", [], {})}
    named = {name: value for name, value in filled.items() if name in properties}
    for name, value in filled.items():
        if name in properties:
            continue
        own = _own_name(name, properties, named)
        if own is None:
            valid = ", ".join(properties) or "none"
            raise NotUnderstoodError(
                f"{shortened(safe_line(name), 60)} is no argument. Valid: {valid}. Call again without it."
            )
        named[own] = value
        notes.append(f"{safe_line(name)} was taken as {own}.")
    return named


def _own_name(name: str, properties: Mapping[str, Any], taken: Mapping[str, Any]) -> str | None:
    """The tool's own word for an argument: a known other name, or one that is nearly the same."""
    plain = name.strip().lower().replace("-", "_")
    free = [each for each in properties if each not in taken]
    for own in free:
        if plain == own or plain in OTHER_NAMES.get(own, ()):
            return own
    near = difflib.get_close_matches(plain, free, n=1, cutoff=0.75)
    return near[0] if near else None


def _meant(name: str, value: Any, schema: Mapping[str, Any], notes: list[str]) -> Any:
    kind = schema.get("type")
    if kind == "integer":
        return _whole(name, value, schema, notes)
    if kind == "boolean":
        return _truth(name, value)
    if kind == "array":
        return _kinds(value, notes)
    text = _words(name, value, notes)
    if name != "query" and len(text) > LONGEST_NAME:
        raise NotUnderstoodError(
            f"{name} has {len(text)} characters: no path, name or id is that long. Copy it from a hit."
        )
    return text


def _whole(name: str, value: Any, schema: Mapping[str, Any], notes: list[str]) -> int:
    low, high = int(schema.get("minimum", 0)), int(schema.get("maximum", 10**9))
    try:
        number = int(float(value)) if not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        shown = shortened(safe_line(str(value)), 40)
        raise NotUnderstoodError(f"{name}: {shown!r} is no whole number. Valid: {low} to {high}.")
    bounded = min(max(number, low), high)
    if bounded != number:
        notes.append(f"{name} {shortened(str(number), 20)} is outside {low} to {high}; {bounded} was used.")
    return bounded


def _truth(name: str, value: Any) -> bool:
    plain = str(value).strip().lower()
    if plain not in YES | NO | {""}:
        raise NotUnderstoodError(
            f"{name}: {shortened(safe_line(plain), 40)!r} is not clear. Valid: true or false."
        )
    return plain in YES


def _words(name: str, value: Any, notes: list[str]) -> str:
    if isinstance(value, str):
        # Half a surrogate pair is valid JSON and no text: it could be neither searched nor sent.
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and all(isinstance(each, (str, int)) for each in value):
        if len(value) > 1 and name != "query":
            raise NotUnderstoodError(f"{name} takes one text, not a list. Call once for each.")
        if len(value) > 1:
            notes.append(f"{name} was a list; its words were joined.")
        return _words(name, " ".join(str(each) for each in value), notes)
    raise NotUnderstoodError(f"{name} is a text, like {name}='…'. Call again with a text.")


def _kinds(value: Any, notes: list[str]) -> list[str]:
    listed = _listed(value)
    found: list[str] = []
    for each in listed:
        word = str(each).strip().lower().lstrip(".")
        if word in ALL_KINDS:
            return []
        kind = next((kind for kind, words in KIND_WORDS.items() if word in words.split()), None)
        if kind is None:
            near = difflib.get_close_matches(word, KIND_WORDS, n=1, cutoff=0.75)
            kind = near[0] if near else None
        if kind is None:
            shown = shortened(safe_line(word), 40)
            raise NotUnderstoodError(f"kinds: {shown!r} is none. Valid: {', '.join(KIND_WORDS)}. Empty: all.")
        if kind != word:
            notes.append(f"kind {shortened(safe_line(word), 40)} was taken as {kind}.")
        found.append(kind)
    return list(dict.fromkeys(found))


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = value.strip("[] ")
    if isinstance(value, str):
        return [each.strip(" '\"") for each in value.replace(";", ",").split(",") if each.strip(" '\"")]
    if isinstance(value, list):
        return [each for each in value if each not in (None, "")]
    raise NotUnderstoodError(
        f"kinds is a list, like ['pdf']. Valid: {', '.join(KIND_WORDS)}. Empty means all."
    )

"""The grammar of config.env: literal KEY=VALUE lines, read as data and never run.

Part of both journeys' beginnings. What the keys mean is the model's business.
"""

from __future__ import annotations

import re
from pathlib import Path

from hermes_digup.errors import SettingsError

KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
LARGEST_BYTES = 256 * 1024


def read_config(path: Path) -> dict[str, str]:
    """The keys and values of a settings file, as they stand there.

    Raises: SettingsError when the file cannot be read, or a line is not KEY=VALUE.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError as error:
        raise SettingsError(
            "There is no settings file", where=str(path), fix="Create it, or unset DIGUP_CONFIG."
        ) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SettingsError(f"The settings file cannot be read: {reason}", where=str(path)) from error
    if len(content) > LARGEST_BYTES:
        raise SettingsError("The settings file is larger than 256 KiB", where=str(path))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(
            "The settings file is not UTF-8 text", where=str(path), fix="Save it as UTF-8."
        ) from error
    return parse_config(text, where=str(path))


def parse_config(text: str, *, where: str) -> dict[str, str]:
    """Keys and values of KEY=VALUE lines; a key that stands twice keeps its last value.

    The faulty line itself is never repeated in the message: it may hold a key.
    """
    values: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        if not equals or not KEY.match(key.rstrip()):
            raise SettingsError(
                f"Line {number} is not KEY=VALUE",
                where=where,
                fix="Write NAME=value, or # in front of a remark.",
            )
        values[key.rstrip()] = unquoted(value.strip(), place=f"line {number}", where=where)
    return values


def unquoted(value: str, *, place: str, where: str) -> str:
    """The value without the quotes around the whole of it; nothing inside is expanded."""
    for quote in ("'", '"'):
        if value.startswith(quote):
            if len(value) < 2 or not value.endswith(quote):
                raise SettingsError(
                    f"The quote at the start of the value is not closed, {place}",
                    where=where,
                    fix="Put quotes around the whole value, or none.",
                )
            return value[1:-1]
    return value

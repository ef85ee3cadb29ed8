"""What the laptop says it sent: `manifest.json`, read as the words of a stranger.

The manifest makes a delivery complete: a landing without one, or whose files don't match it yet, is
incomplete (normal in the middle of a delivery). A manifest that cannot be understood is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from hermes_digup.errors import RefusedCopyError
from hermes_digup.publishing.disk import small_file
from hermes_digup.publishing.layout import Layout

MANIFEST_FORMAT = 1
MAIN, CODE = "index.sqlite", "code.sqlite"

_LIMIT_BYTES = 64 * 1024
# A Pi without a battery clock wakes up in the past, until the network tells it the time.
_AHEAD = timedelta(days=2)

FileName = Literal["index.sqlite", "code.sqlite"]


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("a time is written as text")  # noqa: TRY004 (pydantic turns only ValueError into a fault)
    return value


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(timezone.utc)
    except OverflowError as error:
        raise ValueError("this time does not exist in UTC") from error


UtcTime = Annotated[AwareDatetime, BeforeValidator(_text), AfterValidator(_in_utc)]


class DeliveredFile(BaseModel):
    """Length and sha256 of one database, as the laptop took them. A newer script may say more."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    size: Annotated[int, Field(ge=0, le=1 << 50)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Manifest(BaseModel):
    """One delivery. Unknown keys are passed over, as a newer script may add some; unknown files are not."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: Literal[1]
    files: Mapping[FileName, DeliveredFile]
    source: Annotated[str, Field(max_length=255)] = ""
    home: Annotated[str, Field(max_length=1024)] = ""
    schema_version: Annotated[int, Field(alias="schema", strict=True, ge=0, le=1 << 31)] = 0
    taken_at: UtcTime
    confirmed_at: UtcTime | None = None
    script_version: Annotated[str, Field(max_length=64)] = ""

    @property
    def generation(self) -> str:
        """The name of the generation that these files make: the same content is the same generation."""
        text = "".join(f"{name}:{self.files[name].sha256}\n" for name in sorted(self.files))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Confirmation(BaseModel):
    model_config = ConfigDict(extra="ignore")
    format: Literal[1]
    confirmed_at: UtcTime


class FromTheFutureError(RefusedCopyError):
    """A manifest whose time lies ahead of this machine's clock; a wrong clock may set itself right."""


def parse_manifest(data: bytes, now: datetime) -> Manifest:
    """The manifest behind the bytes that arrived.

    Raises: RefusedCopyError with what is wrong; FromTheFutureError when only the clock says so.
    """
    where = "landing/manifest.json"
    content = _json_object(data, where)
    number = content.get("format")
    if type(number) is int and number > MANIFEST_FORMAT:
        raise RefusedCopyError(
            f"the manifest has format {number}, newer than this program knows ({MANIFEST_FORMAT}); "
            "update it with ansible-playbook site.yml",
            where=where,
        )
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        raise RefusedCopyError(f"the manifest is not understood: {_first(error)}", where=where) from error
    if MAIN not in manifest.files:
        raise RefusedCopyError(f"the manifest does not name {MAIN}", where=where)
    latest = max(filter(None, (manifest.taken_at, manifest.confirmed_at)))
    if latest > now + _AHEAD:
        raise FromTheFutureError(
            f"the manifest is from the future ({latest:%Y-%m-%d %H:%M}; here it is {now:%Y-%m-%d %H:%M} UTC)",
            where=where,
        )
    return manifest


def manifest_bytes(layout: Layout) -> bytes:
    """The manifest that arrived.

    Raises: FileNotFoundError; RefusedCopyError when it is huge or no regular file.
    """
    return small_file(layout.manifest, _LIMIT_BYTES)


def confirmed_at(layout: Layout, now: datetime) -> datetime | None:
    """When the laptop last looked and found nothing newer; None when it did not say so in a sound way."""
    try:
        content = _json_object(small_file(layout.confirmed, _LIMIT_BYTES), "landing/confirmed.json")
        confirmation = _Confirmation.model_validate(content)
    except (OSError, RefusedCopyError, ValidationError):
        return None
    return confirmation.confirmed_at if confirmation.confirmed_at <= now + _AHEAD else None


_OBJECT: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])


def _json_object(data: bytes, where: str) -> dict[str, object]:
    try:
        return _OBJECT.validate_python(json.loads(data), strict=True)
    except (ValueError, RecursionError) as error:
        raise RefusedCopyError(f"{where.rpartition('/')[2]} is not a JSON object", where=where) from error


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, without the value: the value is a stranger's."""
    fault = error.errors(include_input=False, include_url=False, include_context=False)[0]
    if fault["loc"][:1] == ("files",) and fault["type"] == "literal_error":
        return f"it names a file other than {MAIN} and {CODE}"
    return f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"

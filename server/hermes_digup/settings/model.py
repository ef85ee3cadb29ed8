"""Every setting, typed: what it means, its default, and how a value is checked.

The environment wins over config.env; what is unknown is reported with the nearest name that is known.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from annotated_types import Le
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_core import ErrorDetails

from hermes_digup.errors import SettingsError
from hermes_digup.settings.config_file import read_config

PREFIX = "DIGUP_"
CONFIG_KEY = "DIGUP_CONFIG"
PATHS = frozenset({"DIGUP_SOURCES_DIR", "DIGUP_INDEX_DIR"})
NEAR = 0.7
CHOICES = {
    "DIGUP_EMBED_API": str.lower,
    "DIGUP_RESULTS": str.lower,
    "DIGUP_LOG_LEVEL": str.upper,
}


class Settings(BaseModel):
    """All settings of the program, checked and frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    sources_dir: Path = Field(alias="DIGUP_SOURCES_DIR", description="Folder of the delivered sources.")
    index_dir: Path | None = Field(
        None,
        alias="DIGUP_INDEX_DIR",
        description="Instead of sources: a folder with DigUp's own index.sqlite.",
    )
    embed_urls: tuple[str, ...] = Field(
        (),
        alias="DIGUP_EMBED_URL",
        description="Base URLs of the model server, comma-separated, in order.",
    )
    embed_api_key: SecretStr | None = Field(
        None, alias="DIGUP_EMBED_API_KEY", description="Bearer token of the model server."
    )
    embed_api: Literal["openai", "ollama"] = Field(
        "openai", alias="DIGUP_EMBED_API", description="How the model server is spoken to."
    )
    embed_model: str = Field(
        "embeddinggemma-2", alias="DIGUP_EMBED_MODEL", min_length=1, description="Model asked for."
    )
    embed_timeout_s: float = Field(
        8, alias="DIGUP_EMBED_TIMEOUT", gt=0, le=60, description="Seconds for a vector once connected."
    )
    stale_hours: float = Field(
        24,
        alias="DIGUP_STALE_HOURS",
        gt=0,
        le=100_000,
        description="Age in hours from which results mention it.",
    )
    results: Literal["text", "both"] = Field(
        "both", alias="DIGUP_RESULTS", description="Tool answers: text, or text and structured content."
    )
    http_token: SecretStr | None = Field(
        None, alias="DIGUP_HTTP_TOKEN", description="Bearer token of serve --http beyond loopback."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "WARNING", alias="DIGUP_LOG_LEVEL", description="What is logged to standard error."
    )
    config_path: Path = Field(description="The settings file, whether or not it is there.")
    cache_dir: Path = Field(description="Where a copy of a live index is kept.")
    unknown: tuple[str, ...] = Field(
        (), description="A sentence for every DIGUP_ key that means nothing here."
    )

    @field_validator("sources_dir", "index_dir")
    @classmethod
    def _is_full(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_absolute():
            # Otherwise it would mean another folder wherever the program is started.
            raise ValueError("it must be a full path, from / or ~/")
        return value

    @field_validator("embed_urls", mode="before")
    @classmethod
    def _split_urls(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(_checked_url(part.strip()) for part in value.split(",") if part.strip())


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("each URL is http:// or https:// and a host, like http://mac-mini:8000")
    if parts.username or parts.password:
        raise ValueError("a URL must not hold a password; put the key into DIGUP_EMBED_API_KEY")
    return url.rstrip("/")


KNOWN = tuple(field.alias for field in Settings.model_fields.values() if field.alias)


def load(environ: Mapping[str, str], path: Path | None = None) -> Settings:
    """The settings of config.env and the environment, the environment winning.

    `path`, or else DIGUP_CONFIG, names the file; only a file that was named must be there. An empty value
    counts as not given.
    Raises: SettingsError in one sentence that names the key and never shows a value.
    """
    home = Path(environ.get("HOME") or Path.home())
    named = path or (expanded(environ[CONFIG_KEY], home) if environ.get(CONFIG_KEY) else None)
    config_path = named or home / ".config" / "hermes-digup" / "config.env"
    from_file = read_config(config_path) if named or config_path.exists() else {}
    from_environ = {key: value for key, value in environ.items() if key.startswith(PREFIX)}
    unknown = [*_unknown(from_file, config_path.name), *_unknown(from_environ, "environment")]
    given: dict[str, object] = {"DIGUP_SOURCES_DIR": home / ".local" / "share" / "hermes-digup" / "sources"}
    for key, value in {**from_file, **from_environ}.items():
        if key in KNOWN and value.strip():
            given[key] = _prepared(key, value.strip(), home)
    try:
        return Settings.model_validate(
            {
                **given,
                "config_path": config_path,
                "cache_dir": home / ".cache" / "hermes-digup",
                "unknown": tuple(unknown),
            }
        )
    except ValidationError as error:
        raise _named(error, from_environ, config_path) from None


def expanded(value: str, home: Path) -> Path:
    """The path, with a leading ~ as the home folder and nothing else expanded."""
    if value == "~" or value.startswith("~/"):
        return home / value[2:]
    return Path(value)


def _prepared(key: str, value: str, home: Path) -> object:
    if key in PATHS:
        return expanded(value, home)
    return CHOICES[key](value) if key in CHOICES else value


def _nearest(key: str) -> str | None:
    """The known key that was probably meant; what all keys begin with tells nothing."""
    names = {known.removeprefix(PREFIX): known for known in KNOWN}
    near = difflib.get_close_matches(key.upper().removeprefix(PREFIX), names, n=1, cutoff=NEAR)
    return names[near[0]] if near else None


def _unknown(values: Mapping[str, str], where: str) -> list[str]:
    sentences = []
    for key in values:
        if key in KNOWN or key == CONFIG_KEY:
            continue
        near = _nearest(key)
        hint = f" Did you mean {near}?" if near else ""
        sentences.append(f"{key} is not a setting ({where}).{hint}")
    return sentences


def _named(error: ValidationError, from_environ: Mapping[str, str], config_path: Path) -> SettingsError:
    """The first thing wrong, by the name of its key; values are left out, as they may be secrets."""
    first = error.errors(include_url=False, include_input=False)[0]
    key = str(first["loc"][0]) if first["loc"] else "a setting"
    where = "environment" if key in from_environ else str(config_path)
    return SettingsError(f"{key} cannot be used: {_rule(first)}", where=where, fix="Correct that line.")


def _rule(error: ErrorDetails) -> str:
    """What the value must be, in plain words: the checker's own are for programmers."""
    if error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    if error["type"] == "literal_error":
        return f"it must be {error['ctx']['expected']}"
    field = next(each for each in Settings.model_fields.values() if each.alias == error["loc"][0])
    most = next(each.le for each in field.metadata if isinstance(each, Le))
    return f"it must be a number above 0 and at most {most:,}"

"""What the settings mean, where they come from, and how faults are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_digup.errors import SettingsError
from hermes_digup.settings import load


def config(home: Path, text: str) -> Path:
    path = home / ".config" / "hermes-digup" / "config.env"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_without_a_file_the_defaults_hold(tmp_path) -> None:
    settings = load({"HOME": str(tmp_path)})

    assert settings.sources_dir == tmp_path / ".local/share/hermes-digup/sources"
    assert (settings.index_dir, settings.embed_urls, settings.embed_api_key) == (None, (), None)
    assert (settings.embed_api, settings.embed_model, settings.embed_timeout_s) == (
        "openai",
        "embeddinggemma-2",
        8,
    )
    assert (settings.stale_hours, settings.results, settings.log_level) == (24, "both", "WARNING")
    assert settings.unknown == ()


def test_the_environment_wins_over_the_file(tmp_path) -> None:
    config(tmp_path, "DIGUP_STALE_HOURS=5\nDIGUP_RESULTS=text\n")

    settings = load({"HOME": str(tmp_path), "DIGUP_STALE_HOURS": "7"})

    assert (settings.stale_hours, settings.results) == (7, "text")


def test_digup_config_names_another_file(tmp_path) -> None:
    other = tmp_path / "other.env"
    other.write_text("DIGUP_EMBED_MODEL=mine\n")

    settings = load({"HOME": str(tmp_path), "DIGUP_CONFIG": "~/other.env"})

    assert settings.embed_model == "mine"
    assert settings.config_path == other


def test_a_named_file_that_is_not_there_is_a_fault(tmp_path) -> None:
    with pytest.raises(SettingsError, match="no settings file"):
        load({"HOME": str(tmp_path), "DIGUP_CONFIG": "/nowhere/config.env"})


def test_only_a_leading_tilde_of_a_path_is_expanded(tmp_path) -> None:
    settings = load({"HOME": str(tmp_path), "DIGUP_SOURCES_DIR": "~/$X/~", "DIGUP_EMBED_MODEL": "~/model"})

    assert settings.sources_dir == tmp_path / "$X" / "~"
    assert settings.embed_model == "~/model"


def test_urls_are_split_at_commas_in_order(tmp_path) -> None:
    settings = load({"HOME": str(tmp_path), "DIGUP_EMBED_URL": "http://a:8000/, https://b ,"})

    assert settings.embed_urls == ("http://a:8000", "https://b")


def test_an_unknown_key_is_reported_with_the_nearest_known_one(tmp_path) -> None:
    config(tmp_path, "DIGUP_STALE_HOUR=5\nOTHER=1\n")

    settings = load({"HOME": str(tmp_path)})

    assert (
        settings.unknown[0]
        == "DIGUP_STALE_HOUR is not a setting (config.env). Did you mean DIGUP_STALE_HOURS?"
    )
    assert settings.unknown[1] == "OTHER is not a setting (config.env)."


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("DIGUP_SOURCE_DIR", "DIGUP_SOURCES_DIR"),
        ("DIGUP_EMBED_KEY", "DIGUP_EMBED_API_KEY"),
        ("EMBED_URL", "DIGUP_EMBED_URL"),
        ("digup_stale_hours", "DIGUP_STALE_HOURS"),
        ("DIGUP_NONSENSE", None),
        ("DIGUP_X", None),
        ("PATH", None),
    ],
)
def test_only_a_key_that_is_near_is_proposed(tmp_path, key: str, meant: str | None) -> None:
    config(tmp_path, f"{key}=1\n")

    hint = f" Did you mean {meant}?" if meant else ""
    assert load({"HOME": str(tmp_path)}).unknown == (f"{key} is not a setting (config.env).{hint}",)


@pytest.mark.parametrize("key", ["DIGUP_SOURCES_DIR", "DIGUP_INDEX_DIR"])
@pytest.mark.parametrize("value", ["sources", "./x", "../x", "~ana/x", "$HOME/x"])
def test_a_folder_that_depends_on_where_the_program_starts_is_refused(tmp_path, key: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"{key} cannot be used: it must be a full path, from / or ~/"):
        load({"HOME": str(tmp_path), key: value})


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("DIGUP_EMBED_TIMEOUT", "soon", "it must be a number above 0 and at most 60"),
        ("DIGUP_EMBED_TIMEOUT", "61", "it must be a number above 0 and at most 60"),
        ("DIGUP_STALE_HOURS", "nan", "it must be a number above 0 and at most 100,000"),
        ("DIGUP_STALE_HOURS", "0", "it must be a number above 0 and at most 100,000"),
        ("DIGUP_EMBED_API", "grpc", "it must be 'openai' or 'ollama'"),
        ("DIGUP_EMBED_URL", "my-mac:8000", "each URL is http:// or https:// and a host, like"),
    ],
)
def test_a_fault_says_what_the_value_must_be(tmp_path, key: str, value: str, rule: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({"HOME": str(tmp_path), key: value})

    assert str(caught.value).startswith(f"{key} cannot be used: {rule}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("DIGUP_EMBED_TIMEOUT", "soon"),
        ("DIGUP_EMBED_TIMEOUT", "-1"),
        ("DIGUP_STALE_HOURS", "-77"),
        ("DIGUP_EMBED_API", "other"),
        ("DIGUP_RESULTS", "json"),
        ("DIGUP_LOG_LEVEL", "LOUD"),
        ("DIGUP_EMBED_URL", "my-mac:8000"),
        ("DIGUP_EMBED_URL", "http://user:sk-secret@mac-mini"),
        ("DIGUP_EMBED_URL", "http://[bad"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_by_its_key_and_not_shown(
    tmp_path, key: str, value: str
) -> None:
    with pytest.raises(SettingsError, match=key) as caught:
        load({"HOME": str(tmp_path), key: value})

    assert value not in str(caught.value)
    assert caught.value.where == "environment"


def test_secrets_do_not_show_in_the_settings_text(tmp_path) -> None:
    settings = load(
        {"HOME": str(tmp_path), "DIGUP_EMBED_API_KEY": "sk-planted", "DIGUP_HTTP_TOKEN": "tk-planted"}
    )

    assert "k-planted" not in repr(settings)
    assert settings.embed_api_key is not None
    assert settings.embed_api_key.get_secret_value() == "sk-planted"


def test_an_empty_value_counts_as_not_given(tmp_path) -> None:
    settings = load({"HOME": str(tmp_path), "DIGUP_EMBED_API_KEY": "", "DIGUP_STALE_HOURS": " "})

    assert settings.embed_api_key is None
    assert settings.stale_hours == 24

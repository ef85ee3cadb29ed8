"""The grammar of config.env."""

from __future__ import annotations

import pytest

from hermes_digup.errors import SettingsError
from hermes_digup.settings.config_file import parse_config, read_config


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("DIGUP_X=plain", "plain"),
        ("DIGUP_X = spaced out ", "spaced out"),
        ("DIGUP_X='in quotes '", "in quotes "),
        ('DIGUP_X="double # quotes"', "double # quotes"),
        ("DIGUP_X=$HOME/`id`", "$HOME/`id`"),
        ("DIGUP_X=a=b=c", "a=b=c"),
        ("DIGUP_X=with # in it", "with # in it"),
        ("DIGUP_X=", ""),
        ("DIGUP_X=it's", "it's"),
    ],
)
def test_a_value_stands_for_itself(line: str, value: str) -> None:
    assert parse_config(line, where="f") == {"DIGUP_X": value}


def test_remarks_and_empty_lines_mean_nothing() -> None:
    assert parse_config("# a remark\n\n  # another\nA=1\r\n", where="f") == {"A": "1"}


def test_the_last_of_two_values_counts() -> None:
    assert parse_config("A=1\nA=2", where="f") == {"A": "2"}


@pytest.mark.parametrize(
    "line", ["no equals sign sk-secret", "export A=1 sk-secret", "1A=sk-secret", "A='sk-secret"]
)
def test_a_faulty_line_is_named_by_number_and_never_shown(line: str) -> None:
    with pytest.raises(SettingsError, match="ine 2") as caught:
        parse_config("# first\n" + line, where="config.env")

    assert "sk-secret" not in str(caught.value)


def test_a_file_that_is_not_text_is_refused_in_a_sentence(tmp_path) -> None:
    path = tmp_path / "config.env"
    path.write_bytes(b"A=\xff\xfe")

    with pytest.raises(SettingsError, match="not UTF-8"):
        read_config(path)


def test_a_folder_in_place_of_the_file_is_refused_in_a_sentence(tmp_path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_config(tmp_path)

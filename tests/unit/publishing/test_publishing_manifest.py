"""What is taken as a manifest, and what is refused with which words."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_digup.errors import RefusedCopyError
from hermes_digup.publishing.manifest import FromTheFutureError, Manifest, parse_manifest

NOW = datetime(2026, 11, 30, 17, 45, tzinfo=timezone.utc)
SHA = "0123456789abcdef" * 4


def manifest(**changes: object) -> bytes:
    content: dict[str, object] = {
        "format": 1,
        "source": "macbook",
        "home": "/Users/ana",
        "schema": 5,
        "taken_at": "2026-11-30T17:40:02Z",
        "confirmed_at": "2026-11-30T17:40:02Z",
        "script_version": "0.1.0",
        "files": {"index.sqlite": {"size": 1, "sha256": SHA}},
    }
    return json.dumps({**content, **changes}).encode()


def test_a_manifest_says_which_files_and_when() -> None:
    read = parse_manifest(manifest(), NOW)

    assert read.files["index.sqlite"].sha256 == SHA
    assert read.taken_at == datetime(2026, 11, 30, 17, 40, 2, tzinfo=timezone.utc)
    assert (read.home, read.schema_version) == ("/Users/ana", 5)


def test_keys_of_a_newer_script_are_passed_over() -> None:
    assert parse_manifest(manifest(page_size=4096), NOW).generation


FILE = {"size": 1, "sha256": SHA}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "not a JSON object", id="empty"),
        pytest.param(b"{", "not a JSON object", id="cut off"),
        pytest.param(b"\xff\xfe\x00", "not a JSON object", id="no text"),
        pytest.param(b"[1]", "not a JSON object", id="a list"),
        pytest.param(b"[" * 60_000, "not a JSON object", id="deep"),
        pytest.param(b'{"format":' + b"9" * 60_000 + b"}", "not a JSON object", id="a huge number"),
        pytest.param(manifest(format=2), "newer than this program knows", id="format 2"),
        pytest.param(manifest(format="1"), "format", id="format as text"),
        pytest.param(manifest(files={}), "does not name index.sqlite", id="no files"),
        pytest.param(manifest(files={"code.sqlite": FILE}), "does not name index.sqlite", id="code alone"),
        pytest.param(manifest(files={"other.sqlite": FILE}), "a file other than", id="another file"),
        pytest.param(manifest(files={"../index.sqlite": FILE}), "a file other than", id="a path upward"),
        pytest.param(manifest(files={"/etc/passwd": FILE}), "a file other than", id="an absolute path"),
        pytest.param(manifest(files={"index.sqlite": {"size": -1, "sha256": SHA}}), "size", id="negative"),
        pytest.param(
            manifest(files={"index.sqlite": {"size": "1", "sha256": SHA}}), "size", id="size as text"
        ),
        pytest.param(manifest(files={"index.sqlite": {"size": 1, "sha256": "no"}}), "sha256", id="short sha"),
        pytest.param(
            manifest(files={"index.sqlite": {"size": 1, "sha256": SHA + "\n"}}), "sha256", id="newline"
        ),
        pytest.param(
            manifest(files={"index.sqlite": {"size": 1, "sha256": SHA.upper()}}), "sha256", id="upper"
        ),
        pytest.param(manifest(files=[FILE]), "files", id="files as list"),
        pytest.param(manifest(taken_at=1_700_000_000), "taken_at", id="time as number"),
        pytest.param(manifest(taken_at="yesterday"), "taken_at", id="no time"),
        pytest.param(manifest(taken_at="2026-11-30T17:40:02"), "taken_at", id="no zone"),
        pytest.param(manifest(taken_at="0001-01-01T00:00:00+14:00"), "taken_at", id="before all time"),
        pytest.param(manifest(home="x" * 2000), "home", id="long home"),
    ],
)
def test_a_manifest_that_cannot_be_meant_is_refused_with_a_sentence(data: bytes, words: str) -> None:
    with pytest.raises(RefusedCopyError, match=words) as caught:
        parse_manifest(data, NOW)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["taken_at", "confirmed_at"])
def test_a_manifest_from_the_far_future_is_told_apart(key: str) -> None:
    ahead = (NOW + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")

    with pytest.raises(FromTheFutureError, match="from the future"):
        parse_manifest(manifest(**{key: ahead}), NOW)


def test_a_clock_that_is_a_little_behind_refuses_nothing() -> None:
    assert parse_manifest(manifest(), NOW - timedelta(days=1))


def test_the_same_files_are_the_same_generation_whatever_else_changes() -> None:
    one = parse_manifest(manifest(), NOW)
    later = parse_manifest(manifest(taken_at="2026-11-30T17:44:00Z", source="other"), NOW)
    changed = parse_manifest(manifest(files={"index.sqlite": {"size": 1, "sha256": "f" * 64}}), NOW)
    with_code = parse_manifest(manifest(files={"index.sqlite": FILE, "code.sqlite": FILE}), NOW)

    assert one.generation == later.generation
    assert len({one.generation, changed.generation, with_code.generation}) == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    key=st.sampled_from(["format", "files", "taken_at", "confirmed_at", "schema", "home", "source"]),
    value=JSON,
)
def test_any_value_anywhere_is_taken_or_refused(key: str, value: object) -> None:
    try:
        assert isinstance(parse_manifest(manifest(**{key: value}), NOW), Manifest)
    except RefusedCopyError as error:
        assert len(str(error)) < 1000


@given(st.binary(max_size=200))
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    with pytest.raises(RefusedCopyError):
        parse_manifest(data, NOW)

"""Whatever arrives instead of a sound copy, the one before keeps answering and the reason is said."""

from __future__ import annotations

import itertools
import os
import socket
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.integration.publishing.deliveries import (
    CODE,
    MAIN,
    Laptop,
    edited,
    generations,
    leftovers,
    mark_in_use,
    sample,
)

from hermes_digup.cli.indexes import delivered
from hermes_digup.publishing import publish, source_status
from hermes_digup.service import SearchRequest, Service
from hermes_digup.settings import load

NEW = sample(mark="2")
FOR_LIONS = SearchRequest("zebra lion")


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    """A laptop whose first delivery is in use."""
    laptop = Laptop(tmp_path / "sources" / "macbook")
    laptop.deliver(sample(mark="1"))
    publish(laptop.source)
    return laptop


@contextmanager
def server(laptop: Laptop) -> Iterator[Service]:
    """What a server answers from, over the sources of this Pi; it looks for a newer copy at every call."""
    settings = load({"HOME": str(laptop.source.parent)})
    service = Service(
        settings,
        environ={},
        sources=lambda: delivered(laptop.source.parent),
        clock=itertools.count(0.0, 2.0).__next__,
    )
    try:
        yield service
    finally:
        service.close()


def assert_the_old_copy_answers(laptop: Laptop, state: str, words: str = "") -> None:
    before = generations(laptop.source)
    with server(laptop) as running, server(laptop) as restarted:
        assert running.search(FOR_LIONS).hits

        outcome = publish(laptop.source)

        status = source_status(laptop.source)
        assert (outcome.state, outcome.generation) == (state, status.generation)
        assert outcome.reason
        assert words in outcome.reason
        assert (status.state, status.reason) == (state, outcome.reason)
        assert mark_in_use(laptop.source) == "1"
        assert generations(laptop.source) == before
        assert leftovers(laptop.source) == []
        for service in (running, restarted):
            assert service.search(FOR_LIONS).hits
            told = service.index_status().sources[0]
            assert told.generation == outcome.generation
            # What is on its way is no fault of a source, so only a refusal is a problem of it.
            told_as = told.problem if state == "refused" else told.arriving
            assert (told_as or "")[:100] == outcome.reason[:100]
            assert (told.problem is None) == (state != "refused")


def assert_a_good_delivery_follows(laptop: Laptop) -> None:
    laptop.deliver(NEW, sample("code"))
    assert publish(laptop.source).state == "published"
    assert mark_in_use(laptop.source) == "2"
    assert source_status(laptop.source).reason == ""


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


def place_of(data: bytes, query: str) -> int:
    """Where a value of the database stands in its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "read.sqlite"
        path.write_bytes(data)
        with closing(sqlite3.connect(path)) as connection:
            value = connection.execute(query).fetchone()[0]
    place = data.find(bytes(value)[200:264])
    assert place > 4096
    return place


VECTOR = "SELECT vec FROM segments WHERE vec IS NOT NULL"
WORDS = "SELECT block FROM fts_data ORDER BY length(block) DESC"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda data: data[:-4096], "bytes", id="truncated"),
        pytest.param(lambda data: data + b"\0", "bytes", id="one byte more"),
        pytest.param(lambda data: b"", "bytes", id="empty"),
        pytest.param(lambda data: flipped(data, 30), "sha256", id="header"),
        pytest.param(lambda data: flipped(data, len(data) // 2), "sha256", id="page"),
        pytest.param(lambda data: flipped(data, place_of(data, VECTOR)), "sha256", id="vector"),
        pytest.param(lambda data: flipped(data, place_of(data, WORDS)), "sha256", id="fts"),
        pytest.param(lambda data: flipped(data, len(data) - 2000), "sha256", id="last page"),
    ],
)
def test_files_that_do_not_match_their_manifest_are_incomplete(
    change: Callable[[bytes], bytes], words: str, laptop: Laptop
) -> None:
    laptop.deliver(NEW)
    laptop.send(MAIN, change(NEW))

    assert_the_old_copy_answers(laptop, "incomplete", words)
    assert_a_good_delivery_follows(laptop)


def test_every_flipped_byte_is_found_wherever_it_is(laptop: Laptop) -> None:
    laptop.deliver(NEW)
    for place in range(100, len(NEW), len(NEW) // 12):
        laptop.send(MAIN, flipped(NEW, place))

        assert publish(laptop.source).state == "incomplete"


def test_a_manifest_with_a_wrong_sha256_is_incomplete(laptop: Laptop) -> None:
    laptop.deliver(NEW)
    laptop.send("manifest.json", laptop.manifest({MAIN: flipped(NEW, 5000)}))

    assert_the_old_copy_answers(laptop, "incomplete", "sha256")
    assert_a_good_delivery_follows(laptop)


def test_a_manifest_that_names_a_file_that_is_not_there_is_incomplete(laptop: Laptop) -> None:
    laptop.send(MAIN, NEW)
    laptop.send("manifest.json", laptop.manifest({MAIN: NEW, CODE: b"none"}))

    assert_the_old_copy_answers(laptop, "incomplete", "code.sqlite has not arrived")
    assert_a_good_delivery_follows(laptop)


def test_a_lost_manifest_is_incomplete(laptop: Laptop) -> None:
    laptop.deliver(NEW)
    (laptop.landing / "manifest.json").unlink()

    assert_the_old_copy_answers(laptop, "incomplete", "no manifest.json")
    assert_a_good_delivery_follows(laptop)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        pytest.param(b"{not json", "not a JSON object", id="unparsable"),
        pytest.param(b" " * 70_000, "larger than 65,536 bytes", id="huge"),
        pytest.param({"format": 2}, "newer than this program knows", id="future format"),
        pytest.param({"taken_at": "2999-01-01T00:00:00Z"}, "from the future", id="future time"),
        pytest.param(
            {"files": {"../../escape": {"size": 1, "sha256": "0" * 64}}}, "a file other", id="upward"
        ),
        pytest.param(
            {"files": {"index.sqlite-wal": {"size": 1, "sha256": "0" * 64}}}, "a file other", id="log"
        ),
    ],
)
def test_a_manifest_that_cannot_be_meant_is_refused(
    manifest: bytes | dict[str, object], words: str, laptop: Laptop
) -> None:
    laptop.deliver(NEW)
    data = manifest if isinstance(manifest, bytes) else laptop.manifest({MAIN: NEW}, **manifest)
    laptop.send("manifest.json", data)

    assert_the_old_copy_answers(laptop, "refused", words)
    assert_a_good_delivery_follows(laptop)


def a_link(path: Path) -> None:
    path.with_name("target").write_bytes(NEW)
    path.symlink_to("target")


def a_link_outside(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def a_loop(path: Path) -> None:
    path.symlink_to(path.name)


def a_folder(path: Path) -> None:
    (path / "deep").mkdir(parents=True)


def a_socket(path: Path) -> None:
    # The address of a socket is short; its file may then go anywhere.
    with socket.socket(socket.AF_UNIX) as server, tempfile.TemporaryDirectory() as folder:
        server.bind(f"{folder}/socket")
        Path(folder, "socket").rename(path)


def a_device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("making a device needs root (run the tests as root in a container)")


THINGS = [a_link, a_link_outside, a_loop, os.mkfifo, a_folder, a_socket, a_device]


@pytest.mark.parametrize("name", [MAIN, CODE, "manifest.json"])
@pytest.mark.parametrize("thing", THINGS)
def test_only_a_regular_file_is_taken(name: str, thing: Callable[[Path], None], laptop: Laptop) -> None:
    laptop.deliver(NEW, sample("code"))
    (laptop.landing / name).unlink()
    thing(laptop.landing / name)

    assert_the_old_copy_answers(laptop, "refused", name)


@pytest.mark.parametrize("thing", THINGS)
def test_a_confirmation_that_is_no_file_is_no_confirmation(
    thing: Callable[[Path], None], laptop: Laptop
) -> None:
    (laptop.landing / "confirmed.json").unlink()
    thing(laptop.landing / "confirmed.json")

    status = source_status(laptop.source)

    assert (status.state, status.confirmed_at) == ("published", None)


TRUNCATED = NEW[: len(NEW) // 2 // 4096 * 4096]
SQLITE = edited(b"", "CREATE TABLE notes (text TEXT)", "INSERT INTO notes VALUES ('not DigUp''s')")
EMPTY = edited(b"", "CREATE TABLE files (x)", "DROP TABLE files", "PRAGMA user_version=5")


@pytest.mark.parametrize(
    "main",
    [
        pytest.param(b"", id="no bytes"),
        pytest.param(b"SQLite format 3\0" + bytes(84), id="a header alone"),
        pytest.param(os.urandom(20_000), id="noise"),
        pytest.param(TRUNCATED, id="truncated"),
        pytest.param(flipped(NEW, 0), id="flipped magic"),
        pytest.param(flipped(NEW, 100), id="flipped first page"),
        pytest.param(SQLITE, id="not DigUp's"),
        pytest.param(EMPTY, id="empty and sound"),
        pytest.param(edited(NEW, "DROP TABLE segments"), id="without segments"),
        pytest.param(edited(NEW, "DROP TABLE fts"), id="without fts"),
        pytest.param(edited(NEW, "DROP TABLE meta"), id="without meta"),
        pytest.param(edited(NEW, "PRAGMA user_version=4"), id="schema 4"),
        pytest.param(edited(NEW, "PRAGMA user_version=0"), id="schema 0"),
        pytest.param(edited(NEW, "PRAGMA user_version=99", "DROP TABLE fts"), id="schema 99 without fts"),
        pytest.param(edited(NEW, "CREATE VIEW v AS SELECT 1"), id="a view"),
        pytest.param(
            edited(NEW, "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM files; END"), id="a trigger"
        ),
        pytest.param(
            edited(NEW, "DROP TABLE meta", "CREATE VIEW meta AS SELECT 'a' AS key, 'b' AS value"),
            id="a view in place of a table",
        ),
        pytest.param(
            edited(NEW, "UPDATE sqlite_schema SET sql='CREATE TABLE meta (a' WHERE name='meta'"),
            id="a schema that cannot be read",
        ),
    ],
)
def test_unsound_content_is_refused_even_with_a_manifest_that_matches(main: bytes, laptop: Laptop) -> None:
    laptop.deliver(main)

    assert_the_old_copy_answers(laptop, "refused")
    assert_a_good_delivery_follows(laptop)


def test_a_newer_schema_with_digups_tables_is_published_with_a_warning(laptop: Laptop) -> None:
    laptop.deliver(edited(NEW, "PRAGMA user_version=99"))

    outcome = publish(laptop.source)

    assert (outcome.state, mark_in_use(laptop.source)) == ("published", "2")
    with server(laptop) as service:
        status, answer = service.index_status(), service.search(FOR_LIONS)
    assert answer.hits
    for warnings in (status.warnings, answer.warnings):
        told = [each.message for each in warnings if each.code == "schema_newer"]
        assert len(told) == 1
        assert "schema 99" in told[0]
    assert status.sources[0].files.schema_version == 99


def test_an_unsound_code_index_refuses_the_whole_delivery(laptop: Laptop) -> None:
    laptop.deliver(NEW, SQLITE)

    assert_the_old_copy_answers(laptop, "refused", CODE)
    assert_a_good_delivery_follows(laptop)


def test_a_foreign_log_beside_the_files_is_never_taken(laptop: Laptop) -> None:
    laptop.send("index.sqlite-wal", os.urandom(40_000))
    laptop.send("index.sqlite-shm", os.urandom(32_768))
    laptop.deliver(NEW)

    assert publish(laptop.source).state == "published"
    assert mark_in_use(laptop.source) == "2"
    assert not list((laptop.source / "current").glob("*-wal"))


def test_a_copy_refused_once_is_no_copy_after_a_restart_either(laptop: Laptop) -> None:
    laptop.deliver(SQLITE)
    publish(laptop.source)
    (laptop.source / "state.json").unlink()

    assert mark_in_use(laptop.source) == "1"
    assert_the_old_copy_answers(laptop, "refused")

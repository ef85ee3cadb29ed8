"""Only a sound index of DigUp's is let in, and each refusal says in one sentence why."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing, suppress

import numpy as np
import pytest
from tests.doubles.digup import SCHEMA
from tests.soak import rounds
from tests.unit.index.index_rows import HOME, Rows, small_index

from hermes_digup.errors import DigupError, NoIndexError, RefusedCopyError
from hermes_digup.index import Database, check_database, open_snapshot
from hermes_digup.ranking import Query, search

CORRUPTIONS = rounds(100, 2000)


@pytest.fixture
def index(tmp_path):
    return small_index(tmp_path / "index.sqlite")


def change(path, *statements):
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def reason(path, *, is_code=False):
    with pytest.raises(RefusedCopyError) as caught:
        check_database(path, is_code=is_code)
    assert str(path) in str(caught.value)
    return caught.value.what


def test_a_sound_index_passes_and_stays_as_it_is(index):
    before = index.read_bytes(), sorted(index.parent.iterdir())

    check_database(index, is_code=False)

    assert (index.read_bytes(), sorted(index.parent.iterdir())) == before


@pytest.mark.parametrize("schema", [1, 2, 3, 4])
def test_an_old_schema_is_refused_with_the_way_out(index, schema):
    change(index, f"PRAGMA user_version = {schema}")

    assert reason(index) == f"index.sqlite has DigUp's schema {schema}, and 5 or newer is needed"


def test_a_newer_schema_is_tried_with_a_warning(index):
    change(index, "PRAGMA user_version = 99", "ALTER TABLE files ADD COLUMN colour TEXT")

    check_database(index, is_code=False)
    database = Database(index)
    database.close()

    assert database.warnings == ("index.sqlite has DigUp's schema 99, newer than the 5 known here",)


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["CREATE VIEW v AS SELECT 1"], "holds a view"),
        (["CREATE TRIGGER t AFTER INSERT ON meta BEGIN SELECT 1; END"], "holds a trigger"),
        (["CREATE VIRTUAL TABLE other USING fts5(x)"], "holds a virtual table"),
        (["DROP TABLE segments"], "has no table segments"),
        (["DROP TABLE fts"], "has no table fts"),
        (["ALTER TABLE files RENAME COLUMN path TO place"], "has no column path in its table files"),
        (
            ["DROP TABLE fts", "CREATE TABLE fts(name, body, original)"],
            "has a table fts that is no text index",
        ),
        (
            ["DROP TABLE fts", "CREATE VIRTUAL TABLE fts USING fts5(name, body, original UNINDEXED)"],
            "splits its texts into words in another way than DigUp",
        ),
        (
            ["DROP TABLE fts", "CREATE VIRTUAL TABLE fts USING fts5(name, body, original, content='files')"],
            "has a text index over other tables",
        ),
        (
            ["DROP TABLE meta", "CREATE TABLE meta(key, val)"],
            "has no column value in its table meta",
        ),
        (["CREATE TABLE x(y CHECK (length(randomblob(1000000000))))"], "computes values in its tables"),
        (["CREATE TABLE x(y, z AS (1))"], "computes values in its tables"),
        (["CREATE INDEX x ON files(abs(size))"], "computes values in its tables"),
        (["CREATE INDEX x ON files(size) WHERE size > 1"], "computes values in its tables"),
        (["DELETE FROM segments"], "knows 5 files and nothing about them"),
        (["DELETE FROM files"], "knows no files yet"),
        (["PRAGMA user_version = 0"], "has the schema number 0"),
    ],
)
def test_what_digup_never_makes_is_refused(index, statements, expected):
    change(index, *statements)

    assert expected in reason(index)


def test_numbers_that_are_no_row_numbers_are_refused(tmp_path):
    path = tmp_path / "index.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA.replace("segments(id INTEGER PRIMARY KEY", "segments(id INT PRIMARY KEY"))

    assert reason(path) == "index.sqlite has a table segments that is not numbered as DigUp's is"


def test_another_program_s_database_is_refused(tmp_path):
    path = tmp_path / "index.sqlite"
    change(path, "CREATE TABLE notes(x)")

    assert reason(path) == "index.sqlite is a SQLite database, but not DigUp's"


@pytest.mark.parametrize("content", [b"", b"hello, this is a letter", b"SQLite format 3\0" + b"\xff" * 4096])
def test_what_is_no_database_is_refused(tmp_path, content):
    path = tmp_path / "index.sqlite"
    path.write_bytes(content)

    reason(path)


def test_an_empty_main_index_is_refused_and_an_empty_code_index_is_not(tmp_path):
    for name in ("index.sqlite", "code.sqlite"):
        with Rows(tmp_path / name):
            pass

    assert reason(tmp_path / "index.sqlite") == "index.sqlite knows no files yet"
    check_database(tmp_path / "code.sqlite", is_code=True)


def test_links_pipes_and_folders_are_refused_without_waiting(index, tmp_path):
    (tmp_path / "link").symlink_to(index)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()

    for name in ("link", "pipe", "folder", "nothing"):
        reason(tmp_path / name)


def test_a_log_of_another_database_beside_it_is_ignored(index):
    index.with_name("index.sqlite-wal").write_bytes(b"\x37\x7f\x06\x82" + b"\1" * 4000)

    check_database(index, is_code=False)


def test_a_truncated_database_is_refused(index):
    content = index.read_bytes()
    index.write_bytes(content[: len(content) // 2])

    reason(index)


def test_damage_that_no_query_would_meet_is_found(index):
    required = "replace(sql, 'detail TEXT', 'detail TEXT NOT NULL')"
    change(
        index,
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = {required} WHERE name = 'files'",
    )

    assert reason(index) == "index.sqlite is damaged: NULL value in files.detail"


def test_no_corruption_crashes_anything(tmp_path):
    """Whatever is flipped: refused or published, and then every door answers or names the fault."""
    content = small_index(tmp_path / "sound" / "index.sqlite").read_bytes()
    path = tmp_path / "index.sqlite"
    refused = 0
    for number in range(CORRUPTIONS):
        chance = random.Random(number)
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 3, 30, 300))):
            place = chance.randrange(len(damaged)) if chance.random() < 0.7 else chance.randrange(100)
            damaged[place] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            check_database(path, is_code=False)
        except DigupError:
            refused += 1
        try:
            database = Database(path)
        except DigupError:
            continue
        for door in doors(database):
            with suppress(DigupError):
                door()
        database.close()

    assert 0 < refused < CORRUPTIONS


def doors(database):
    vector = np.ones(768, np.float32)
    return [
        lambda: search(database, Query("rent overdue page", vector, z_gate=0.1)),
        lambda: search(database, Query("lease", kinds=frozenset({"pdf"}))),
        lambda: [database.passages(number) for number in range(8)],
        lambda: [database.segment(number) for number in range(20)],
        lambda: database.file(f"{HOME}/Documents/Zu\u0308rich/lease.txt"),
        lambda: database.browse(name_contains="scan"),
        database.counts,
        lambda: database.samples(3),
    ]


def test_a_folder_without_an_index_is_named(tmp_path):
    for folder in (tmp_path / "missing", tmp_path):
        with pytest.raises(NoIndexError, match=str(folder)):
            open_snapshot(folder, machine="macbook")


def test_a_fault_that_sqlite_tells_in_bytes_that_are_no_text_is_a_refusal(index):
    change(
        index,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET name = 'zzzz', tbl_name = 'zzzz', sql = 'CREATE' WHERE name = 'meta'",
    )
    index.write_bytes(index.read_bytes().replace(b"zzzz", b"\xff\xfe\xfd\xfc"))

    assert reason(index).startswith("index.sqlite cannot be read: ")
    with pytest.raises(RefusedCopyError, match=r"index\.sqlite cannot be read"):
        Database(index)

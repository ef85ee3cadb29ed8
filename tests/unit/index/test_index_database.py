"""What a database answers, also when its columns hold what they should not."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import numpy as np
import pytest
from tests.unit.index.index_rows import HOME, Rows, direction, small_index

from hermes_digup.errors import BusyError, RefusedCopyError
from hermes_digup.index import Database, folder_filter, stopping_when
from hermes_digup.ranking import Query, search


@pytest.fixture
def database(tmp_path):
    opened = Database(small_index(tmp_path / "index.sqlite"))
    yield opened
    opened.close()


def names(found):
    return [hit.path.rpartition("/")[2] for hit in found.hits]


def test_a_file_is_found_in_every_unicode_spelling(database):
    for spelling in ("Zürich", "Zu\u0308rich"):
        found = database.file(f"{HOME}/Documents/{spelling}/lease.txt")

        assert found is not None
        assert found.kind == "doc"
    assert database.file("/no such file") is None
    assert database.file("/lone \ud800 surrogate") is None


def test_passages_come_in_reading_order_without_the_name(database):
    file = database.file("/Volumes/Archive/talk.m4a")

    passages = database.passages(file.id)

    assert [(each.kind, each.loc, each.loc_end, each.text) for each in passages] == [
        ("audio", 0.0, 30.0, None),
        ("audio", 25.0, 55.0, None),
    ]
    assert database.segment(passages[0].id) == passages[0]


@pytest.mark.parametrize("number", [-1, 0, 10**6, 2**63, 2**80])
def test_a_number_without_a_row_gives_nothing(database, number):
    assert database.segment(number) is None
    assert database.file_by_id(number) is None


def test_browsing_shows_the_newest_first_in_pages(database):
    page, total = database.browse(limit=2)
    rest, _ = database.browse(limit=9, offset=2)

    assert [file.path.rpartition("/")[2] for file in page] == ["lease.txt", "scan.pdf"]
    assert total == 5 == len(page) + len(rest)


def test_browsing_filters_by_kind_folder_and_part_of_the_name(database):
    inside = folder_filter("~/Documents/Zu\u0308rich/", HOME)

    assert [file.path for file in database.browse(folder=inside)[0]] == [f"{HOME}/Documents/Zürich/lease.txt"]
    assert {file.kind for file in database.browse(kinds={"pdf", "archive"})[0]} == {"pdf"}
    assert [file.kind for file in database.browse(name_contains="SCREENSHÓT")[0]] == ["screenshot"]


def test_counts_tell_what_is_inside(database):
    counts = database.counts()

    assert counts.files_by_kind == {"doc": 1, "pdf": 2, "screenshot": 1, "audio": 1}
    assert counts.files_by_state == {"done": 4, "partial": 1}
    assert (counts.segments, counts.vectors, counts.bad_info_rows) == (14, 8, 0)
    assert counts.unfinished == [(f"{HOME}/Books/long.pdf", 30, 120)]


def test_samples_are_passages_that_can_be_embedded_again(database):
    samples = database.samples(2)

    assert [passage.kind for passage, _, _ in samples] == ["chunk", "chunk"]
    for passage, file, vector in samples:
        assert passage.file == file.id
        assert vector.tolist() == direction(int(passage.loc)).tolist()


@pytest.mark.parametrize(
    "folder", ["~/Documents/Zürich", "~/Documents/Zu\u0308rich/", f"{HOME}//Documents/./Zürich"]
)
def test_a_folder_holds_what_is_in_it_and_not_its_sibling(database, folder):
    for query in (Query("rent"), Query("unknownword", direction(1), z_gate=-9.0)):
        found = search(
            database, Query(query.text, query.vector, folder=folder_filter(folder, HOME), z_gate=-9.0)
        )

        assert names(found) == ["lease.txt"]


def test_a_folder_stored_decomposed_is_found_by_its_composed_name(database):
    folder = folder_filter("~/Documents/Zürich old", HOME)

    assert names(search(database, Query("rent", folder=folder))) == ["scan.pdf"]


def test_no_folder_means_no_filter(database):
    assert folder_filter("", HOME) is None
    assert folder_filter(None, HOME) is None
    assert len(search(database, Query("rent")).hits) == 3


def test_a_limit_loses_nothing_that_is_in_the_folder(tmp_path):
    with Rows(tmp_path / "index.sqlite") as rows:
        for number in range(1200):
            rows.segment(rows.file(f"{HOME}/A/{number}.txt"), place=1, text="rent rent", vector=direction(1))
        weak = rows.file(f"{HOME}/B/weak.txt")
        rows.segment(
            weak, place=1, text="a long text that says rent but once, far behind", vector=direction(1, 0.2)
        )
    database = Database(tmp_path / "index.sqlite")

    by_words = search(database, Query("rent", folder=folder_filter("~/B", HOME), limit=5))
    by_meaning = search(
        database, Query("zzz", direction(1), folder=folder_filter("~/B", HOME), z_gate=-99.0, limit=5)
    )
    database.close()

    assert names(by_words) == names(by_meaning) == ["weak.txt"]


def test_malformed_info_costs_no_vectors_and_is_counted(tmp_path):
    with Rows(tmp_path / "index.sqlite") as rows:
        for info in ("{broken", '{"pages": "64"}', None):
            file = rows.file(f"{HOME}/{info}.pdf".replace("/{", "/x{"), "pdf", info=info)
            rows.segment(file, "page", place=31, text="text of a page", vector=direction(3))
    database = Database(tmp_path / "index.sqlite")

    rows, counts = database.vector_rows(), database.counts()
    database.close()

    assert rows.pages.tolist() == [0, 64, 0]
    assert counts.bad_info_rows == 1


def test_vectors_of_a_wrong_length_or_without_finite_numbers_are_passed_over(tmp_path):
    endless = direction(1)
    endless[5] = np.inf
    with Rows(tmp_path / "index.sqlite") as rows:
        file = rows.file(f"{HOME}/a.txt")
        for vector in (b"", b"x" * 700, b"x" * 1538, endless, direction(2), np.full(768, np.nan, np.float32)):
            rows.segment(file, place=1, text="some words", vector=vector)
    database = Database(tmp_path / "index.sqlite")

    cosines = database.cosines(direction(2))
    database.close()

    assert cosines.tolist() == [1.0]
    assert database.warnings == ("2 vectors in index.sqlite hold no finite numbers and are passed over",)


HOSTILE = (
    "UPDATE files SET path = x'2f80ff2f61', kind = x'00', size = -9223372036854775808 WHERE id = 1",
    "UPDATE files SET mtime = 9e999, info = x'7b7d', state = 7 WHERE id = 2",
    "UPDATE files SET mtime = 'yesterday', size = 9e300, detail = x'ff' WHERE id = 3",
    "UPDATE files SET info = CAST(x'7b22ff22' AS TEXT) WHERE id = 4",
    "UPDATE segments SET loc = -9e999, loc_end = 9e999 WHERE id % 2",
    "UPDATE segments SET loc = x'ff00', kind = x'ff', modality = 3, excerpt = x'c3' WHERE id % 5 = 2",
    "UPDATE fts SET body = CAST(x'72656e7420ff00c3' AS TEXT), original = x'ffff' WHERE rowid > 3",
    "INSERT INTO segments(file, kind, modality, loc) VALUES(99, 'chunk', 'text', 9223372036854775807)",
    "INSERT INTO fts(rowid, name, body) VALUES(5000, 'rent', 'rent')",
    "INSERT INTO meta VALUES('other', x'ff')",
    "UPDATE meta SET value = x'ff' WHERE key = 'vector_source'",
)


def test_columns_of_any_type_are_survived(tmp_path):
    path = small_index(tmp_path / "index.sqlite")
    with closing(sqlite3.connect(path)) as db:
        for statement in HOSTILE:
            db.execute(statement)
        db.execute("UPDATE files SET info = ? WHERE id = 5", ("[" * 100_000,))
        db.commit()
    database = Database(path)

    found = search(database, Query("rent page connection", np.ones(768, np.float32), z_gate=-5.0))
    listed, total = database.browse(limit=200)
    everything = [passage for file in listed for passage in database.passages(file.id)]
    counts = database.counts()
    database.close()

    assert {hit.kind for hit in found.hits} <= {"doc", "pdf", "screenshot", "audio"}
    assert total == len(listed) == 5
    assert all(file.size >= 0 and np.isfinite(file.modified_unix) for file in listed)
    assert all(isinstance(passage.text, str | None) for passage in everything)
    assert all(passage.loc is None or np.isfinite(passage.loc) for passage in everything)
    assert counts.bad_info_rows == 3


def test_a_query_ends_when_its_time_is_over(tmp_path):
    with Rows(tmp_path / "index.sqlite") as rows:
        for number in range(3000):
            rows.segment(rows.file(f"{HOME}/{number}.txt"), place=1, text="rent " * 20)
    database = Database(tmp_path / "index.sqlite")

    looks = iter([False] * 3)
    with stopping_when(lambda: next(looks, True)), pytest.raises(BusyError):
        search(database, Query("rent"))
    assert next(looks, None) is None
    with stopping_when(lambda: True), pytest.raises(BusyError):
        database.file_by_id(1)
    after = search(database, Query("rent"))
    database.close()

    assert after.hits


def test_many_threads_share_a_database_and_leave_few_connections(database):
    expected = names(search(database, Query("rent overdue", direction(4))))
    answers = []

    def ask():
        answers.extend(names(search(database, Query("rent overdue", direction(4)))) for _ in range(10))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [expected] * 80


def test_a_closed_database_says_so(tmp_path):
    database = Database(small_index(tmp_path / "index.sqlite"))
    database.close()

    for door in (database.counts, database.vector_rows, lambda: search(database, Query("rent"))):
        with pytest.raises(RefusedCopyError, match="is closed"):
            door()


def test_a_machine_without_memory_is_not_taken_for_a_damaged_copy_at_once(database, monkeypatch):
    def too_little(*_arguments):
        raise MemoryError

    monkeypatch.setattr("hermes_digup.index.database.best_rows", too_little)

    with pytest.raises(RefusedCopyError, match=r"not enough memory for it .*Close other programs"):
        search(database, Query("rent", direction(4)))

"""A server always answers from one whole copy, follows `current`, and leaves nothing open behind."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import threading
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tests.unit.index.index_rows import HOME, Rows, direction

from hermes_digup.errors import NoIndexError, RefusedCopyError
from hermes_digup.index import Shelf, open_snapshot, pack_vectors, packed_name, stopping_when
from hermes_digup.ranking import Query, search

ABOUT = '{"format":1,"id":"x","home":"/Users/ana","taken_at":"2026-01-02T03:04:05Z"}'
CONFIRMED = '{"format":1,"confirmed_at":"2026-01-02T05:00:00+01:00"}'


class Clock:
    """A clock that moves when told."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "macbook"
    (folder / "generations").mkdir(parents=True)
    (folder / "landing").mkdir()
    return folder


@pytest.fixture
def shelf(source):
    with_clock = Shelf(source, "macbook", clock=Clock())
    yield with_clock
    with_clock.close()


def generation(source: Path, name: str) -> Path:
    """A copy that carries its name in every text."""
    folder = source / "generations" / name
    folder.mkdir()
    for file in ("index.sqlite", "code.sqlite"):
        with Rows(folder / file) as rows:
            for number in range(5):
                row = rows.file(f"{HOME}/{name}/{number}.txt")
                rows.segment(row, place=1, text=f"rent of {name} {number}", vector=direction(number))
        pack_vectors(folder / file, folder / packed_name(folder / file))
    (folder / "generation.json").write_text(ABOUT)
    return folder


def use(source: Path, name: str) -> None:
    beside = source / ".current.new"
    beside.unlink(missing_ok=True)
    beside.symlink_to(Path("generations") / name)
    beside.rename(source / "current")


def later(shelf, seconds=1.1):
    shelf._clock.now += seconds


def leased(shelf):
    with shelf.lease() as snapshot:
        return snapshot.generation


def descriptors():
    gc.collect()
    listed = Path("/proc/self/fd")  # Linux only; elsewhere nothing is counted
    return len(list(listed.iterdir())) if listed.exists() else 0


def is_locked(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_a_snapshot_tells_what_it_is(source):
    folder = generation(source, "aaa")
    snapshot = open_snapshot(folder, machine="macbook")
    (source / "landing" / "confirmed.json").write_text(CONFIRMED)

    assert (snapshot.machine, snapshot.generation, snapshot.home) == ("macbook", "aaa", "/Users/ana")
    assert snapshot.taken_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert snapshot.confirmed_at == datetime(2026, 1, 2, 4, tzinfo=timezone.utc)
    assert (snapshot.main.vectors_from, snapshot.warnings) == ("packed", ())
    assert snapshot.code is not None
    assert snapshot.code.is_code
    assert is_locked(folder)
    snapshot.close()
    assert not is_locked(folder)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"confirmed_at": 5}', '{"confirmed_at":"99999-01-01"}', "[" * 9999]
)
def test_a_garbled_confirmation_is_none(source, text):
    snapshot = open_snapshot(generation(source, "aaa"), machine="macbook")
    (source / "landing" / "confirmed.json").write_text(text)

    assert snapshot.confirmed_at is None
    snapshot.close()


def a_link(path):
    path.with_name("target").write_text(CONFIRMED)
    path.symlink_to("target")


def a_huge_file(path):
    path.write_text(CONFIRMED + " " * 64 * 1024)


@pytest.mark.parametrize("thing", [a_link, a_huge_file, os.mkfifo, Path.mkdir])
def test_what_stands_in_place_of_a_confirmation_is_neither_followed_nor_waited_for(source, thing):
    snapshot = open_snapshot(generation(source, "aaa"), machine="macbook")
    thing(source / "landing" / "confirmed.json")
    answers = []

    asking = threading.Thread(target=lambda: answers.append(snapshot.confirmed_at), daemon=True)
    asking.start()
    asking.join(10)

    assert answers == [None]
    snapshot.close()


def test_nothing_published_is_said(shelf, source):
    with pytest.raises(NoIndexError, match="macbook"):
        leased(shelf)

    generation(source, "aaa")
    use(source, "aaa")

    assert leased(shelf) == "aaa"


def test_the_deadline_of_the_first_question_does_not_stop_the_opening(shelf, source):
    generation(source, "aaa")
    use(source, "aaa")

    with stopping_when(lambda: True):
        assert leased(shelf) == "aaa"


def test_a_newer_copy_is_used_within_a_second_and_not_looked_for_before(shelf, source):
    for name in ("aaa", "bbb"):
        generation(source, name)
    use(source, "aaa")
    assert leased(shelf) == "aaa"
    use(source, "bbb")

    assert leased(shelf) == "aaa"
    later(shelf)
    assert leased(shelf) == "bbb"
    assert not is_locked(source / "generations" / "aaa")


def test_a_lease_outlives_the_swap(shelf, source):
    for name in ("aaa", "bbb"):
        generation(source, name)
    use(source, "aaa")

    with shelf.lease() as old:
        use(source, "bbb")
        later(shelf)
        assert leased(shelf) == "bbb"
        assert is_locked(old.folder)
        assert search(old.main, Query("rent", direction(1))).hits[0].path.startswith(f"{HOME}/aaa/")

    assert not is_locked(old.folder)
    with pytest.raises(RefusedCopyError, match="is closed"):
        old.main.counts()


def test_a_damaged_newer_copy_leaves_the_old_one_answering_and_says_why(shelf, source):
    generation(source, "aaa")
    use(source, "aaa")
    assert leased(shelf) == "aaa"
    (generation(source, "bbb") / "index.sqlite").write_bytes(b"SQLite format 3\0 and then nothing")
    use(source, "bbb")
    later(shelf)

    assert leased(shelf) == "aaa"
    assert "index.sqlite" in shelf.refused

    generation(source, "ccc")
    use(source, "ccc")
    later(shelf)
    assert leased(shelf) == "ccc"
    assert shelf.refused is None


def test_a_refused_copy_is_tried_again_after_a_while(shelf, source):
    generation(source, "aaa")
    use(source, "aaa")
    leased(shelf)
    file = generation(source, "bbb") / "index.sqlite"
    sound = file.read_bytes()
    file.write_bytes(b"")
    use(source, "bbb")
    later(shelf)
    assert leased(shelf) == "aaa"
    file.write_bytes(sound)

    later(shelf)
    assert leased(shelf) == "aaa"
    later(shelf, 31)
    assert leased(shelf) == "bbb"


def test_after_a_restart_an_older_copy_answers_for_a_damaged_one(source):
    generation(source, "aaa")
    (generation(source, "bbb") / "index.sqlite").write_bytes(b"")
    use(source, "bbb")
    shelf = Shelf(source, "macbook")

    assert leased(shelf) == "aaa"
    assert "index.sqlite" in shelf.refused
    shelf.close()


def test_a_source_that_is_retired_stops_answering_at_once(shelf, source):
    generation(source, "aaa")
    use(source, "aaa")
    leased(shelf)
    (source / "current").unlink()
    later(shelf)

    with pytest.raises(NoIndexError):
        leased(shelf)
    assert not is_locked(source / "generations" / "aaa")


def test_swaps_under_load_lose_no_query_and_leave_nothing_open(source):
    for name in ("aaa", "bbb"):
        generation(source, name)
    use(source, "aaa")
    shelf = Shelf(source, "macbook", clock=iter(range(10**9)).__next__)
    leased(shelf)
    before, stop, answers = descriptors(), threading.Event(), []

    def ask():
        while not stop.is_set():
            try:
                with shelf.lease() as snapshot:
                    hits = search(snapshot.main, Query("rent", direction(1))).hits
                    answers.append({hit.path.split("/")[3] for hit in hits} | {snapshot.generation})
            except Exception as error:  # noqa: BLE001 - whatever it is, it counts
                answers.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(40):
        use(source, ("bbb", "aaa")[number % 2])
        seen = len(answers)
        while len(answers) < seen + 3:
            stop.wait(0.001)
    stop.set()
    for thread in threads:
        thread.join()
    leased(shelf)

    assert all(answer in ({"aaa"}, {"bbb"}) for answer in answers)
    assert {"aaa"} in answers
    assert {"bbb"} in answers
    assert descriptors() <= before + 2 * 4  # idle connections of two databases
    shelf.close()
    shutil.rmtree(source)

"""The fast search by words has the rows, the order, the coverage and the snippets of DigUp's statement."""

from __future__ import annotations

import math
import random
import sqlite3
import threading
from contextlib import closing

import numpy as np
import pytest
from tests.soak import rounds
from tests.unit.index.index_rows import HOME, Rows

from hermes_digup.index import Database, folder_filter, keywords, postings, sums
from hermes_digup.index.owners import read_owners
from hermes_digup.index.postings import Postings
from hermes_digup.index.sums import scores_add_up

ROWS, LIMITS, SHOWN = 7000, (1000, 100, 100), 20
USUAL = (keywords._USUAL, 0.99)  # a guess that decides how fast an answer is, never what it is
WORDS = [f"{a}{b}{c}" for a in "brtsml" for b in "aeiou" for c in ("n", "ring", "st", "ters")]
PLAIN = """
    SELECT s.file, s.id {snippet} FROM fts JOIN segments s ON s.id = fts.rowid
    WHERE fts MATCH ? {inside} ORDER BY bm25(fts, 3.0, 1.0) LIMIT {limit}
"""
SNIPPET = ", snippet(fts, 1, '«', '»', '…', 12)"
COVERED = "SELECT DISTINCT s.file FROM fts JOIN segments s ON s.id = fts.rowid WHERE fts MATCH ?"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Words as unequal as in a language; many rows are equal, so that many scores are."""
    chance = random.Random(8)
    weights = [1 / (place + 1.3) ** 1.2 for place in range(len(WORDS))]
    path = tmp_path_factory.mktemp("keywords") / "index.sqlite"
    with Rows(path) as rows:
        file = 0
        for number in range(ROWS):
            if not number or chance.random() < 0.05:
                file = rows.file(
                    f"{HOME}/{chance.choice('ab')}/{' '.join(chance.choices(WORDS, k=2))} {number}"
                )
            rows.segment(
                file, place=number, text=" ".join(chance.choices(WORDS, weights, k=chance.randint(1, 30)))
            )
    return path


KNOWN = {  # what the words that are asked for again score; and what SQLite then still has to
    "unknown": (False, True),
    "known": (True, True),
    "known, of an FTS5 that sums otherwise": (True, False),
}


@pytest.mark.parametrize(("known", "add_up"), KNOWN.values(), ids=KNOWN)
def test_two_hundred_random_questions_have_the_answers_of_the_plain_statement(
    index, monkeypatch, known, add_up
):
    monkeypatch.setattr(postings, "_FEW_ROWS", 10 if known else 10 * ROWS)
    monkeypatch.setattr(keywords, "scores_add_up", lambda: add_up and scores_add_up())
    scored, best, added_up = [], keywords._best, 0
    monkeypatch.setattr(keywords, "_best", lambda *asked: scored.append(asked[3:]) or best(*asked))
    summed, best_known = [], keywords._best_known
    monkeypatch.setattr(keywords, "_best_known", lambda *asked: summed.append(asked) or best_known(*asked))
    chance = random.Random(9)
    with closing(Database(index)) as database, closing(sqlite3.connect(index)) as plain:
        numbers = {"": "", **{name: inside(plain, name) for name in "ab"}}
        for number in range(rounds(200, 2000)):
            patterns = some_patterns(chance)
            match, folder = " OR ".join(patterns), chance.choice(["", "", "a", "b"])
            limit = chance.choice(LIMITS)
            monkeypatch.setattr(keywords, "_USUAL", chance.choice(USUAL))
            rows = PLAIN.format(snippet="", inside=numbers[folder], limit=limit)
            wanted = plain.execute(rows, (match,)).fetchall()

            for _ in range(3 if known else 1):
                before = len(scored)
                found = database.keyword_rows(patterns, limit, folder_filter(folder, HOME))
                scoring_ended()
            added_up += len(scored) == before
            covered = database.files_matching(patterns, {row.file for row in found})

            assert [(row.file, row.segment) for row in found] == wanted, match
            if number % 4 == 0:  # they take long
                made = database.marked(patterns, [row.segment for row in found[:SHOWN]])
                marked = [(row.file, row.segment, made[row.segment]) for row in found[:SHOWN]]
                shown = PLAIN.format(snippet=SNIPPET, inside=numbers[folder], limit=SHOWN)
                assert marked == plain.execute(shown, (match,)).fetchall()
            for pattern, files in zip(patterns, covered, strict=True):
                plainly = {file for (file,) in plain.execute(COVERED, (pattern,))}
                assert files == plainly & {row.file for row in found}, pattern

    if known:
        assert len(summed) > rounds(180, 1800)
        assert added_up > rounds(180, 1800) if keywords.scores_add_up() else not added_up
    else:
        assert not added_up
        assert sum(some != () for some in scored) > 60
        assert len(scored) > rounds(220, 2200)  # when too few were promising, others are scored too


def test_a_sum_that_is_rounded_otherwise_is_noticed(monkeypatch):
    monkeypatch.setattr(sums, "reduce", lambda _, scores: math.fsum(scores))

    assert not sums.scores_add_up.__wrapped__()


def test_closing_ends_what_is_scored_for_the_next_time(index, monkeypatch):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n"
    monkeypatch.setattr(Postings, "score", lambda _, connection, __: connection.execute(endless).fetchone())
    database = Database(index)
    for _ in range(2):
        database.keyword_rows(['"ban"'], 1000, None)
    assert [thread.name for thread in threading.enumerate()].count("words") == 1

    database.close()

    assert scoring_ended()


def test_where_no_thread_can_start_words_are_found_all_the_same(index, monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", fails)
    with closing(Database(index)) as database:
        answers = [database.keyword_rows(['"ban"'], 1000, None) for _ in range(3)]

    assert answers[0] == answers[1] == answers[2] != []


def fails(_):
    raise RuntimeError("can't start new thread")


def scoring_ended():
    """Waits for what is scored in the background."""
    for thread in threading.enumerate():
        if thread.name == "words":
            thread.join(60)
    return not any(thread.name == "words" for thread in threading.enumerate())


def some_patterns(chance):
    """One to eight words of any frequency, now and then the start of one, or a phrase."""
    words = chance.sample(WORDS, chance.randint(1, 8))
    if chance.random() < 0.5:
        words[0] = WORDS[chance.randrange(4)]
    patterns = [f'"{word}"' for word in words]
    if chance.random() < 0.3:
        patterns[-1] = f'"{words[-1][:3]}"*'
    if chance.random() < 0.2:
        patterns.append(f'"{chance.choice(WORDS[:5])} {chance.choice(WORDS[:9])}"')
    return patterns


def inside(plain, folder):
    paths = plain.execute("SELECT id, path FROM files").fetchall()
    files = [str(number) for number, path in paths if path.startswith(f"{HOME}/{folder}/")]
    return f"AND s.file IN ({','.join(files)})"


def test_rows_of_words_are_kept_as_far_as_there_is_room(index):
    with closing(sqlite3.connect(index)) as connection:
        asked = []
        connection.set_trace_callback(
            lambda sql: asked.append(sql) if sql.startswith("SELECT group_concat") else None
        )
        known = Postings(kept_bytes=24 * ROWS)
        first = known.of(connection, '"ban"')
        for expression in ('"ban"', '"baring"', '"best"', '"ban"'):
            known.of(connection, expression)

        assert len(asked) == 3
        assert known.of(connection, '"ban"').tolist() == first.tolist() == sorted(first)
        assert known.of(connection, '"nowhere"').tolist() == []

        tight = Postings(kept_bytes=8)
        for _ in range(2):
            tight.of(connection, '"ban"')
        assert asked[-1] == asked[-2]
        assert len(asked) == 6


def test_words_are_found_where_lengths_of_texts_are_damaged(tmp_path):
    with Rows(tmp_path / "index.sqlite") as rows:
        file = rows.file(f"{HOME}/a")
        segments = [rows.segment(file, text="word") for _ in range(9)]
    with closing(sqlite3.connect(rows.path)) as connection:
        connection.execute("UPDATE fts_data SET block = x'0a000000' WHERE id = 1")  # ten texts, of no words
        connection.execute("UPDATE fts_docsize SET sz = x'000000'")
        connection.commit()

    with closing(Database(rows.path)) as database:
        found = database.keyword_rows(['"word"', '"none"'], 3, None)

    assert [row.segment for row in found] == segments[:3]


def test_words_whose_scores_have_no_room_together_are_not_scored():
    known = Postings(kept_bytes=100_000)
    for word in "abc":
        known._rows.put(word, np.arange(3500))

    assert known.worth_scoring(["a", "new", "b"]) == ["a", "b"]
    assert known.worth_scoring(["a", "b", "c"]) == []


def test_words_that_match_nothing_take_room_too(index):
    with closing(sqlite3.connect(index)) as connection:
        known = Postings(kept_bytes=10_000)
        for number in range(100):
            known.of(connection, f'"nowhere{number}"')

        assert 1 < len(known._rows._known) < 20


def test_the_files_of_segments_are_known_in_any_order_and_for_none(tmp_path):
    path = tmp_path / "index.sqlite"
    with Rows(path) as rows:
        one, two = rows.file(f"{HOME}/a"), rows.file(f"{HOME}/b")
        segments = [rows.segment(file, text="word") for file in (two, one, two, one)]
    with closing(sqlite3.connect(path)) as connection:
        owners = read_owners(connection)
        all_pairs = connection.execute("SELECT file, id FROM segments ORDER BY id").fetchall()
        connection.execute("DROP INDEX segments_file")
        unsorted = read_owners(connection)
        connection.execute("DELETE FROM segments")
        none = read_owners(connection)

    for each in (owners, unsorted):
        assert each.of([segment for _, segment in all_pairs]) == all_pairs
    assert owners.of([segments[2], 999, segments[1]]) == [(two, segments[2]), (one, segments[1])]
    every = np.array(segments)
    assert owners.are_in(np.array([two]), np.array([*segments, 999])).tolist() == [
        True,
        False,
        True,
        False,
        False,
    ]
    for each in (owners, unsorted):
        assert each.with_any([every, every[:1], every[:0]], [one, two, 999]) == [{one, two}, {two}, set()]
    assert none.of(segments) == []
    assert none.with_any([every], [one]) == [set()]

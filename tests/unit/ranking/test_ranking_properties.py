"""Laws of the ranking: the fast code agrees with the plain one, and no text raises."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.soak import rounds
from tests.unit.index.index_rows import HOME, Rows, small_index
from tests.unit.ranking.plain_search import plain_search

from hermes_digup import ranking
from hermes_digup.index import Database, folder_filter, pack_vectors, packed_name
from hermes_digup.ranking import Query, search
from hermes_digup.records import KINDS

QUERIES_AN_INDEX = 20
INDEXES = rounds(10, 100)
TEXT = """
    rent lease tenant deposit harbour café naïve straße K7Q2LM trx50 2024 4815162342
    getUserName retry_policy os.path
    বাড়ি চুক্তি চুক্তির ভিডিওতে ছবি المكتبة كتاب صورتي 東京 三国 \uff46\uff55\uff4c\uff4c Σίσυφος note video
    screenshot the of ❤️ def class
"""
WORDS = TEXT.split()
FOLDERS = [f"{HOME}/Documents", f"{HOME}/Documents 2", f"{HOME}/Zürich/deep", "/Volumes/Archive", HOME]


def some_vector(chance):
    """Few, coarse numbers: products and sums are exact, so nothing depends on the order of adding."""
    vector = np.zeros(768, np.float32)
    for place in chance.sample(range(40), 4):
        vector[place] = chance.choice((-0.5, -0.25, 0.125, 0.25, 0.5))
    return vector


def strange_word(chance):
    """Some neighbouring characters from anywhere in Unicode: any script, marks, signs, unassigned ones."""
    start = int(2 ** chance.uniform(5, 18))
    word = "".join(chr(start + chance.randrange(48)) for _ in range(chance.randint(1, 6)))
    return word.encode("utf-8", "replace").decode()


def random_index(path, chance, words=tuple(WORDS)):
    """An index of some tens of files: long ones, odd ones, exact copies, now and then many rows of a word."""
    with Rows(path) as rows:
        copied = some_vector(chance)
        for number in range(chance.randint(1, 60)):
            kind = "code" if path.name == "code.sqlite" else chance.choice([*KINDS, "archive"])
            info = chance.choice([None, {"pages": "64"}, {"pages": "12"}, '{"pages":70}', "[1]", "{}"])
            name = f"{chance.choice(FOLDERS)}/{number} {chance.choice(words)}.{chance.choice(('txt', 'pdf'))}"
            file = rows.file(name, kind, info=info)
            for _ in range(chance.randint(0, 6)):
                vector = chance.choice([None, some_vector(chance), copied, b"short"])
                rows.segment(
                    file,
                    chance.choice(("chunk", "page", "image", "lines", "mystery")),
                    place=chance.choice((None, 1.0, 31.0, 40.9, 41.0, 99.0)),
                    text=" ".join(chance.choices(words, k=chance.randint(1, 12)))
                    if chance.random() < 0.7
                    else None,
                    vector=vector,
                    modality=chance.choice(("text", "text", "image", "audio", "smell")),
                )
        if chance.random() < 0.2:
            many = rows.file(f"{HOME}/Documents/many.txt")
            for place in range(1, 1101):
                rows.segment(many, place=place, text="rent")
    return path


def random_query(chance, words):
    text = chance.choice((" ", "\n", "-")).join(chance.choices(words, k=chance.randint(0, 5)))
    return Query(
        chance.choice((text, text, "rent", "getUserName", "retry_policy()")),
        chance.choice((None, some_vector(chance), some_vector(chance), np.ones(5, np.float32))),
        kinds=chance.choice(
            (None, None, frozenset({"pdf", "doc"}), frozenset({"archive", "image"}), frozenset())
        ),
        folder=folder_filter(
            chance.choice((None, None, "~/Documents", "/Volumes/Archive/", "~/Zu\u0308rich")), HOME
        ),
        limit=chance.choice((0, 3, 20, 200)),
        z_gate=chance.choice((2.0, 2.0, 0.3, -1.7)),
        word_weight=chance.choice((None, None, 0.0, 0.7)),
        prefix_last=chance.random() < 0.3,
    )


def told(results):
    return [(h.file_id, h.score, h.z, h.cosine, h.keyword_rank, h.segment_id) for h in results.hits]


@pytest.mark.parametrize("name", ["index.sqlite", "code.sqlite"])
def test_the_fast_code_agrees_with_the_plain_one(tmp_path, name):
    for number in range(INDEXES):
        chance = random.Random(f"{name} {number}")
        words = [*WORDS, *(strange_word(chance) for _ in WORDS)]
        path = random_index(tmp_path / str(number) / name, chance, words)
        pack_vectors(path, path.with_name(packed_name(path)))
        database = Database(path, packed=chance.choice((None, path.with_name(packed_name(path)))))
        try:
            for _ in range(QUERIES_AN_INDEX // 2):
                query = random_query(chance, words)
                results = search(database, query)
                # The first hits for a name in code point at its definition, which is not these rules' matter.
                of_interest = 5 if database.is_code else 6
                expected = [hit[:of_interest] for hit in plain_search(path, query)]
                assert [hit[:of_interest] for hit in told(results)] == pytest_approx(expected), (
                    number,
                    query,
                )
        finally:
            database.close()


def pytest_approx(hits):
    """The same files in the same order; numbers may differ in their last bits."""
    return [pytest.approx(hit, abs=1e-6) for hit in hits]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("indexes")
    small_index(folder / "index.sqlite")
    random_index(folder / "code.sqlite", random.Random(7))
    opened = [Database(folder / "index.sqlite"), Database(folder / "code.sqlite")]
    yield opened
    for database in opened:
        database.close()


texts = st.text() | st.lists(st.sampled_from([*WORDS, '"', "AND", "NEAR(", "*", "\0", "a.b()", ":"])).map(
    " ".join
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts, prefix_last=st.booleans())
def test_no_query_raises(indexes, text, prefix_last):
    for database in indexes:
        results = search(database, Query(text, np.ones(768, np.float32), prefix_last=prefix_last, z_gate=0.5))

        assert results.strong_count <= len(results.hits) <= 20


@settings(max_examples=150, deadline=None)
@given(text=texts, word=texts)
def test_marks_lie_around_stretches_of_the_text(text, word):
    for start, end, match in ranking.matches(word, text):
        assert text[start:end] == match != ""

    shown = ranking.snippet(text, [word])

    if shown is not None and not set("«»…") & set(text):
        assert shown.replace("«", "").replace("»", "").strip("… ") in ranking.excerpt(text, len(text))


@settings(max_examples=150, deadline=None)
@given(text=texts, limit=st.integers(1, 50))
def test_an_excerpt_is_one_line_within_its_limit(text, limit):
    line = ranking.excerpt(text, limit)

    assert len(ranking.characters(line)) <= limit + 1
    assert "\n" not in line
    assert "".join(ranking.characters(text)) == text


@settings(max_examples=150, deadline=None)
@given(text=texts, name=texts)
def test_code_is_read_whatever_it_holds(text, name):
    last = text.count("\n")

    found = ranking.definition(name or "x", text, 1)
    line = ranking.first_line([name], text, 1)

    assert found is None or (1 <= found.line <= 1 + last and found.strength in (1, 2))
    assert line is None or 1 <= line <= 1 + last
    assert ranking.identifier(text) is None or isinstance(ranking.identifier(text), list)
    assert len(ranking.characters(ranking.summary(text))) <= 161

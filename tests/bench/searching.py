"""Scoring, keywords and whole queries over one corpus, next to a plain read of its vectors."""

from __future__ import annotations

import math
import random
import sqlite3
import statistics
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
from tests.bench.corpus import drawn_words, unit_vectors, vocabulary
from tests.bench.measure import READ, Line, at_least, at_most, medians, plain_read
from tests.bench.plain import Answer, plainly, quickly

from hermes_digup.index import Database, kernel, pack_vectors, packed_name
from hermes_digup.index.postings import Postings
from hermes_digup.ranking import Query, patterns, search

WHOLE_GOALS = {"1 rare word": 8, "3 rare": 8, "3 middling": 8, "5 mixed": 20, "3 common": 35}
RANDOM_QUESTIONS = 200


def packed(index: Path) -> Path:
    """The packed vectors beside an index, made when they are not there yet."""
    out = index.with_name(packed_name(index))
    if not out.is_file():
        pack_vectors(index, out)
    return out


def mapped(index: Path) -> np.ndarray:
    """The float16 bytes of an index's vectors, mapped."""
    count = sqlite3.connect(index).execute("SELECT count(vec) FROM segments").fetchone()[0]
    return np.asarray(np.memmap(packed(index), np.float16, "r", 4096, (count, 768)))  # as the server has them


def a_query() -> np.ndarray:
    return unit_vectors(np.random.default_rng(99), 1)[0]


def scoring(index: Path, rounds: int, *, goals: bool) -> list[Line]:
    """All vectors, one thread: with NumKong's wheel, and without."""
    matrix, query = mapped(index), a_query()

    def by(which: kernel.Kernel) -> Callable[[], object]:
        return lambda: kernel.cosines(matrix, query, kernel=which, threads=1)

    took = medians(
        {READ: plain_read(matrix), "numkong": by(kernel.NUMKONG), "numpy": by(kernel.NUMPY)}, rounds
    )
    exact = np.concatenate([block.astype(np.float64) @ query.astype(np.float64) for block in parts(matrix)])
    worst = max(
        float(np.abs(kernel.cosines(matrix, query, kernel=each) - exact).max())
        for each in (kernel.NUMKONG, kernel.NUMPY)
    )
    part = f"{len(matrix):,} vectors"
    figures = [
        ("with NumKong", took["numkong"] / took[READ], 2.6),
        ("without", took["numpy"] / took[READ], 5),
    ]
    return [
        Line(part, "plain read of their float16 bytes", f"{took[READ] * 1e3:.1f} ms"),
        *(
            figure(part, f"scores, one thread, {how}", value, goal if goals else None)
            for how, value, goal in figures
        ),
        Line(part, "largest error of a score", f"{worst:.1e}", "<= 5e-07", worst <= 5e-7),
    ]


def parts(matrix: np.ndarray) -> list[np.ndarray]:
    return np.array_split(matrix, math.ceil(len(matrix) / 10_000))


def words(index: Path, rounds: int) -> list[Line]:
    """Keywords: the fast way against DigUp's statement, equal and faster, each asked for the first time."""
    part = f"{count_of(index):,} vectors"
    plain = sqlite3.connect(f"{index.as_uri()}?mode=ro&immutable=1", uri=True)
    lines, factors = [], []
    with closing(plain), closing(Database(index, packed=packed(index))) as database:

        def fresh(sought: list[str]) -> Answer:
            forget(database)
            return quickly(database, sought)

        for name, chosen in drawn_words(plain).items():
            sought = patterns(chosen, prefix_last=False)
            same = fresh(sought) == plainly(plain, sought)
            took = medians(
                {"plain": lambda s=sought: plainly(plain, s), "ours": lambda s=sought: fresh(s)}, rounds
            )
            factors.append(took["plain"] / took["ours"])
            line = at_least(part, f"keywords, {name}: faster than the plain statement", factors[-1], 3, "x")
            lines.append(line._replace(holds=bool(line.holds and same)))
        differing = sum(quickly(database, each) != plainly(plain, each) for each in random_questions())
    lines.append(at_least(part, "keywords, median of these", statistics.median(factors), 6, "x"))
    said = f"{RANDOM_QUESTIONS - differing} of {RANDOM_QUESTIONS}"
    lines.append(Line(part, "random questions equal to the plain statement", said, "all", not differing))
    return lines


def forget(database: Database) -> None:
    """Drops what a database keeps of former questions, so that the next one is as the first."""
    database._postings = Postings()


def remember(database: Database, ask: Callable[[], object]) -> None:
    """Asks twice, and waits for what is scored for the third time."""
    forget(database)
    for _ in range(2):
        ask()
    for thread in threading.enumerate():
        if thread.name == "words":
            thread.join()


def random_questions() -> list[list[str]]:
    """One to eight words of any frequency."""
    chance, every = random.Random(21), vocabulary()
    questions = []
    for _ in range(RANDOM_QUESTIONS):
        places = [int(10 ** chance.uniform(0.3, 4.3)) for _ in range(chance.randint(1, 8))]
        questions.append(patterns([every[place] for place in dict.fromkeys(places)], prefix_last=False))
    return questions


def whole(index: Path, rounds: int, *, goals: bool) -> tuple[list[Line], dict[str, float]]:
    """Whole searches for 20 hits, in x read, and in seconds: words asked for the first time, and again."""
    part, query = f"{count_of(index):,} vectors", a_query()
    with closing(sqlite3.connect(index)) as connection:
        questions = {name: " ".join(chosen) for name, chosen in drawn_words(connection).items()}
    with closing(Database(index, packed=packed(index))) as database:

        def ask(text: str) -> None:
            forget(database)
            search(database, Query(text, query))

        read = {READ: plain_read(mapped(index))}
        took = medians(
            {**read, **{name: (lambda t=text: ask(t)) for name, text in questions.items()}}, rounds
        )
        again = {}
        for name, text in questions.items():
            remember(database, lambda t=text: search(database, Query(t, query)))
            asked = medians({**read, name: lambda t=text: search(database, Query(t, query))}, rounds)
            again[name] = asked[name] / asked[READ]
    lines = []
    for name in questions:
        what, goal = f"whole search, {name}", WHOLE_GOALS.get(name) if goals else None
        lines.append(figure(part, what, took[name] / took[READ], goal))
        lines.append(figure(part, f"{what}, asked again", again[name], None))
    return lines, took


def figure(part: str, what: str, value: float, goal: float | None) -> Line:
    """A figure in readings of the vectors, with its goal where it has one."""
    return (
        Line(part, what, f"{value:.2f} x read")
        if goal is None
        else at_most(part, what, value, goal, "x read")
    )


def count_of(index: Path) -> int:
    with closing(sqlite3.connect(index)) as connection:
        return int(connection.execute("SELECT count(vec) FROM segments").fetchone()[0])

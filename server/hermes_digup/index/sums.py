"""Whether what FTS5 scores several expressions together is what it scores each alone, added up."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from functools import cache, reduce
from operator import add
from typing import Final

from hermes_digup.index.postings import BM25

_WORDS: Final = ("ash", "birch", "cedar", "elm", "fir")  # of which the first is the rarest
_TEXTS: Final = 500
_MOST_REPEATED: Final = 40


@cache
def scores_add_up() -> bool:
    """Tries it, to the last bit. Raises: sqlite3.Error.

    They do not where a compiler fuses FTS5's multiplication with its addition, as those for ARM may: a sum
    then differs in its last bit, and of two rows that score almost the same the other may come first.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE fts USING fts5(name, text)")
        connection.executemany("INSERT INTO fts VALUES ('', ?)", _texts())
        together = _scores(connection, " OR ".join(_WORDS))
        alone = [_scores(connection, word) for word in _WORDS]
    return all(
        score == reduce(add, (scores.get(row, 0.0) for scores in alone)) for row, score in together.items()
    )


def _texts() -> list[tuple[str]]:
    """Texts of many lengths, that hold some of the words."""
    chance = random.Random(1)  # noqa: S311 - the same texts each time
    texts = []
    for _ in range(_TEXTS):
        some = [word for place, word in enumerate(_WORDS, 1) if chance.random() < place / (2 * len(_WORDS))]
        texts.append((" ".join([*some, "leaf" + " leaf" * chance.randrange(_MOST_REPEATED)]),))
    return texts


def _scores(connection: sqlite3.Connection, match: str) -> dict[int, float]:
    sql = f"SELECT rowid, {BM25} FROM fts WHERE fts MATCH ?"  # noqa: S608 - a constant
    return dict(connection.execute(sql, (match,)).fetchall())

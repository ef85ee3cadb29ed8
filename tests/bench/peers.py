"""The same corpus and words in sqlite-vec and LanceDB, in an environment of the benchmark's own."""

from __future__ import annotations

import json
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.bench.corpus import drawn_words
from tests.bench.measure import READ, Line, at_least, plain_read
from tests.bench.searching import a_query, forget, mapped, packed, remember

from hermes_digup.index import Database
from hermes_digup.ranking import Query, search

PACKAGES = ("lancedb==0.40.0", "sqlite-vec==0.1.9", "numpy>=2,<3", "pyarrow==26.0.1")
if not hasattr(sqlite3.Connection, "enable_load_extension"):  # as Python may be built
    PACKAGES = (*PACKAGES, "pysqlite3>=0.6,<0.7")
CHILD = Path(__file__).with_name("peers_child.py")


def comparison(index: Path, folder: Path, rounds: int) -> list[Line]:
    """Whole searches of ours, hybrid searches of LanceDB, vectors alone of sqlite-vec; in turns.

    All are asked the same words again and again; of ours one database forgets them each time.
    """
    command = [_python(folder), CHILD, index, folder]
    with closing(sqlite3.connect(index)) as connection:
        questions = {name: " ".join(words) for name, words in drawn_words(connection).items()}
    query, read = a_query(), plain_read(mapped(index))
    lines = []
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with (
        child,
        closing(Database(index, packed=packed(index))) as forgetful,
        closing(Database(index, packed=packed(index))) as database,
    ):
        assert child.stdin is not None
        assert child.stdout is not None
        versions = json.loads(child.stdout.readline())

        def ours(words: str) -> None:
            search(database, Query(words, query))

        def ours_first(words: str) -> None:
            forget(forgetful)
            search(forgetful, Query(words, query))

        def theirs(what: str, words: str) -> float:
            asked = {"what": what, "words": words, "vector": query.tolist()}
            child.stdin.write(json.dumps(asked) + "\n")
            child.stdin.flush()
            return float(json.loads(child.stdout.readline()))

        for name, words in questions.items():
            took: dict[str, list[float]] = {}
            remember(database, lambda w=words: ours(w))
            for _ in range(rounds + 1):
                took.setdefault(READ, []).append(_timed(read))
                took.setdefault("ours", []).append(_timed(lambda w=words: ours(w)))
                took.setdefault("first", []).append(_timed(lambda w=words: ours_first(w)))
                for what in ("lance", "vec"):
                    took.setdefault(what, []).append(theirs(what, words))
            middle = {what: statistics.median(each[1:]) for what, each in took.items()}
            times = {what: f"{each / middle[READ]:.1f}" for what, each in middle.items()}
            what = (
                f"{name}: faster than LanceDB {versions['lance']} hybrid ({times['lance']} x read, ours "
                f"{times['ours']}, sqlite-vec {versions['vec']} vectors alone {times['vec']})"
            )
            lines.append(at_least("peers", what, middle["lance"] / middle["ours"], 3, "x"))
            factor = middle["lance"] / middle["first"]
            what = f"{name}, asked for the first time (ours {times['first']} x read)"
            lines.append(Line("peers", what, f"{factor:.1f} x"))
        child.stdin.close()
    return lines


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _python(folder: Path) -> Path:
    """The peers' interpreter, made when it is not there yet."""
    python = folder / "peers" / "bin" / "python"
    if not python.is_file():
        print(f"Installing {', '.join(PACKAGES)} into {folder / 'peers'} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder / "peers"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python

"""The same corpus and words in sqlite-vec and LanceDB, in an environment of the benchmark's own."""

from __future__ import annotations

import json
import sqlite3
import statistics
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from tests.bench.corpus import drawn_words
from tests.bench.measure import Line, at_least
from tests.bench.searching import a_query, packed

from hermes_digup.index import Database
from hermes_digup.ranking import Query, search

PACKAGES = ("lancedb==0.40.0", "sqlite-vec==0.1.9", "numpy>=2,<3", "pyarrow==26.0.1")
if not hasattr(sqlite3.Connection, "enable_load_extension"):  # as Python may be built
    PACKAGES = (*PACKAGES, "pysqlite3>=0.6,<0.7")
CHILD = Path(__file__).with_name("peers_child.py")


def comparison(index: Path, folder: Path, rounds: int) -> list[Line]:
    """Whole searches of ours, hybrid searches of LanceDB, vectors alone of sqlite-vec; in turns."""
    command = [_python(folder), CHILD, index, folder]
    with closing(sqlite3.connect(index)) as connection:
        questions = {name: " ".join(words) for name, words in drawn_words(connection).items()}
    query = a_query()
    lines = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        versions = json.loads(child.stdout.readline())

        def theirs(what: str, words: str) -> float:
            asked = {"what": what, "words": words, "vector": query.tolist()}
            child.stdin.write(json.dumps(asked) + "\n")
            child.stdin.flush()
            return float(json.loads(child.stdout.readline()))

        for name, words in questions.items():
            took: dict[str, list[float]] = {"ours": [], "lance": [], "vec": []}
            for _ in range(rounds + 1):
                took["ours"].append(_ours(index, words, query))
                for what in ("lance", "vec"):
                    took[what].append(theirs(what, words))
            middle = {what: statistics.median(each[1:]) for what, each in took.items()}
            vec = f"sqlite-vec {versions['vec']}, vectors alone: {middle['vec'] / middle['ours']:.1f} x"
            what = f"{name}: faster than LanceDB {versions['lance']} hybrid ({vec})"
            lines.append(at_least("peers", what, middle["lance"] / middle["ours"], 3, "x"))
        child.stdin.close()
    return lines


def _ours(index: Path, words: str, query: object) -> float:
    """One whole search for words that were not asked before."""
    with closing(Database(index, packed=packed(index))) as database:
        database.cosines(query)  # the mapping has its pages, as theirs have
        start = time.perf_counter()
        search(database, Query(words, query))
        return time.perf_counter() - start


def _python(folder: Path) -> Path:
    """The peers' interpreter, made when it is not there yet."""
    python = folder / "peers" / "bin" / "python"
    if not python.is_file():
        print(f"Installing {', '.join(PACKAGES)} into {folder / 'peers'} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder / "peers"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python

"""Servers: their start, their memory, and what publishing and swapping cost those who ask meanwhile."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from tests.bench.corpus import drawn_words
from tests.bench.measure import Line, at_least, at_most, data_of, medians, memory_of, mib
from tests.bench.pi import Pi, Server
from tests.bench.searching import a_query, packed

from hermes_digup.index import Database

IMPORTS = "import numpy, mcp.server, mcp.server.stdio"
SERVERS, QUERIES = 3, 200
ALLOWED_OWN = 16 << 20
ALLOWED_DATA = 48 << 20


def starting(pi: Pi, index: Path, rounds: int) -> list[Line]:
    """From nothing to the first answer; and vectors mapped against vectors read row by row."""
    part, query = "start", a_query()

    def first_answer() -> None:
        server = Server(pi)
        server.search(question(index))
        server.process.kill()
        server.process.wait()

    def first_score(pack: Path | None) -> None:
        with closing(Database(index, packed=pack)) as database:
            database.cosines(query)

    imports = [sys.executable, "-c", IMPORTS]
    took = medians({"imports": lambda: subprocess.run(imports, check=True), "server": first_answer}, rounds)
    ready = medians(
        {"mapped": lambda: first_score(packed(index)), "rows": lambda: first_score(None)}, max(rounds // 3, 1)
    )
    ratio = took["server"] / took["imports"]
    return [
        at_most(part, "server to first answer", ratio, 1.5, "x importing numpy and the MCP SDK"),
        at_least(part, "ready with first scores: sooner than rows", ready["rows"] / ready["mapped"], 10, "x"),
    ]


def sharing(pi: Pi, index: Path, matrix_bytes: int) -> list[Line]:
    """Three servers that all have answered, against three that have not."""
    servers = [Server(pi) for _ in range(SERVERS)]
    idle = sum(memory_of(each.process.pid)["Pss"] for each in servers)
    for server in servers:
        for text in questions(index):
            server.search(text)
    total = sum(memory_of(each.process.pid)["Pss"] for each in servers)
    for server in servers:
        server.close()
    allowed = 1.1 * matrix_bytes + idle + SERVERS * ALLOWED_OWN
    what = f"PSS of {SERVERS} servers; vectors {mib(matrix_bytes)}, idle servers {mib(idle)}"
    return [Line("memory", what, mib(total), f"<= {mib(allowed)}", total <= allowed)]


def swapping(pi: Pi, index: Path, matrix_bytes: int) -> list[Line]:
    """One server asked all the time: quietly, then while the next copy is published and taken into use."""
    server = Server(pi)
    texts = questions(index)
    for text in texts:
        server.search(text)
    quiet = [timed(server, texts[turn % len(texts)]) for turn in range(QUERIES)]
    own = memory_of(server.process.pid)["Private_Dirty"]
    base = pi.publish()  # nothing new: the command's own memory
    before = pi.current()
    pi.land(index, f"swap {time.time()}")
    peaks: list[int] = []
    publisher = threading.Thread(target=lambda: peaks.append(pi.publish()))
    publisher.start()
    busy, most = [], own
    while publisher.is_alive():
        busy.append(timed(server, texts[len(busy) % len(texts)]))
        most = max(most, memory_of(server.process.pid)["Private_Dirty"])
    publisher.join()
    time.sleep(1.1)  # servers look once a second
    for turn in range(QUERIES):
        busy.append(timed(server, texts[turn % len(texts)]))
        most = max(most, memory_of(server.process.pid)["Private_Dirty"])
    server.close()
    if pi.current() == before:
        raise SystemExit("nothing was published")
    p99 = [float(np.percentile(each, 99)) for each in (quiet, busy)]
    peak = (matrix_bytes + max(peaks[0] - base, 0) + most - own) / matrix_bytes
    return [
        at_most("swap", "p99 of queries while publishing and swapping", p99[1] / p99[0], 2, "x quiet p99"),
        at_most("swap", "most memory, vectors included", peak, 1.2, "x one matrix"),
        Line("swap", "failed queries", f"0 of {len(quiet) + len(busy)}", "0", True),
    ]


def limited(pi: Pi, index: Path) -> list[Line]:
    """Three servers held to little more than they have when idle, through a publish and a swap under load."""
    servers = [Server(pi, small_stacks=True) for _ in range(SERVERS)]
    for server in servers:
        limit = data_of(server.process.pid) + ALLOWED_DATA
        resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (limit, limit))
    pi.land(index, f"limited {time.time()}")
    done, counts = threading.Event(), [0] * SERVERS

    def load(place: int) -> None:
        texts = questions(index)
        while not done.is_set():
            servers[place].search(texts[counts[place] % len(texts)])
            counts[place] += 1

    threads = [threading.Thread(target=load, args=(place,)) for place in range(SERVERS)]
    for thread in threads:
        thread.start()
    before = pi.current()
    pi.publish()
    time.sleep(5)
    alive = all(thread.is_alive() for thread in threads)
    done.set()
    for thread in threads:
        thread.join()
    for server in servers:
        server.close()
    limit_said = f"RLIMIT_DATA of idle + {mib(ALLOWED_DATA)}"
    what = f"{SERVERS} servers with {limit_said}: publish, swap, {sum(counts)} queries"
    good = alive and pi.current() != before
    return [Line("memory", what, "no failure" if good else "failed", "no failure", good)]


def timed(server: Server, text: str) -> float:
    start = time.perf_counter()
    server.search(text)
    return time.perf_counter() - start


def question(index: Path) -> str:
    return questions(index)[0]


def questions(index: Path) -> Sequence[str]:
    """Questions of rare, middling and mixed words."""
    if index not in _QUESTIONS:
        with closing(sqlite3.connect(index)) as database:
            drawn = drawn_words(database)
        _QUESTIONS[index] = [" ".join(drawn[name]) for name in ("3 rare", "3 middling", "5 mixed")]
    return _QUESTIONS[index]


_QUESTIONS: dict[Path, list[str]] = {}


def warm(pi: Pi, index: Path) -> None:
    """A first delivery, in use."""
    pi.land(index, "first")
    pi.publish()

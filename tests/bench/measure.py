"""Figures as ratios inside one run: variants take turns, and medians are compared."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

READ = "read"


class Line(NamedTuple):
    """One line of the table: a figure, what it is allowed to be, and whether it is."""

    part: str
    what: str
    measured: str
    goal: str = ""
    holds: bool | None = None


def at_most(part: str, what: str, value: float, goal: float, unit: str) -> Line:
    return Line(part, what, f"{value:.2f} {unit}", f"<= {goal:g}", value <= goal)


def at_least(part: str, what: str, value: float, goal: float, unit: str) -> Line:
    return Line(part, what, f"{value:.1f} {unit}", f">= {goal:g}", value >= goal)


def medians(variants: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of each variant; they take turns, and the first round only warms up."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 1):
        for name, work in variants.items():
            start = time.perf_counter()
            work()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def plain_read(matrix: np.ndarray) -> Callable[[], object]:
    """One pass over the bytes of a matrix, as fast as one thread reads memory."""
    words = matrix.reshape(-1).view(np.uint64)
    return lambda: np.bitwise_xor.reduce(words)


def memory_of(process: int | str = "self") -> dict[str, int]:
    """What a process holds, in bytes: Pss, Private_Dirty, Rss and so on (Linux)."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    return {name: int(size) << 10 for name, size in re.findall(r"(\w+): +(\d+) kB", rollup)}


def data_of(process: int) -> int:
    """The private writable memory a process asked for, in bytes: what RLIMIT_DATA limits."""
    status = Path(f"/proc/{process}/status").read_text()
    return sum(int(size) << 10 for size in re.findall(r"Vm(?:Data):\s+(\d+) kB", status))


def mib(size: float) -> str:
    return f"{size / (1 << 20):.0f} MiB"


def machine() -> str:
    """The machine in general words: no name of it."""
    kind = platform.machine()
    model = ""
    if Path("/proc/cpuinfo").is_file():
        text = Path("/proc/cpuinfo").read_text()
        found = re.search(r"^(?:model name|Model)\s*: (.+)$", text, re.MULTILINE)
        flags = [flag for flag in ("avx512f", "avx2", "f16c", "asimdhp", "asimd") if f" {flag}" in text]
        model = f"{found[1].strip()}, " if found else ""
        model += "/".join(flags)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (
        f"{kind} ({model}), {os.cpu_count()} cores, {memory:.0f} GiB; {platform.system()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}, SQLite {sqlite3.sqlite_version}"
    )


def table(lines: list[Line]) -> str:
    """Lines as Markdown."""
    rows = ["| part | figure | measured | goal | |", "|---|---|---|---|---|"]
    for line in lines:
        verdict = "" if line.holds is None else "yes" if line.holds else "**no**"
        rows.append(f"| {line.part} | {line.what} | {line.measured} | {line.goal} | {verdict} |")
    return "\n".join(rows)

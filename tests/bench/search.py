#!/usr/bin/env python3
"""Measures the search and prints the table of docs/performance.md.

    python -m tests.bench.search [FOLDER] [--sizes 5000,62000,250000] [--rounds 9]
        [--parts scoring,words,whole,servers,peers]

Corpora, copies and the peers' environment are kept in FOLDER (~/.cache/hermes-digup/bench, 8 GB). Every
figure is a ratio inside one run; run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as the command sets it, before numpy loads

from tests.bench import peers, searching, serving
from tests.bench.corpus import corpus
from tests.bench.measure import READ, Line, at_most, machine, table
from tests.bench.pi import Pi

PARTS = ("scoring", "words", "whole", "servers", "peers")
MIDDLE, LARGE = 62_000, 250_000


def main() -> None:
    """Runs what was asked for, then prints one table."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=cache / "hermes-digup" / "bench")
    parser.add_argument("--sizes", default=f"5000,{MIDDLE},{LARGE}")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    sizes, wanted = sorted(map(int, args.sizes.split(","))), args.parts.split(",")
    folder = args.folder.resolve()
    indexes = {size: corpus(folder, size) for size in sizes}
    lines: list[Line] = []
    took: dict[int, dict[str, float]] = {}
    for size, index in indexes.items():
        if "scoring" in wanted:
            lines += searching.scoring(index, args.rounds, goals=size == LARGE)
        if "words" in wanted and size == MIDDLE:
            lines += searching.words(index, args.rounds // 2)
        if "whole" in wanted:
            more, took[size] = searching.whole(index, args.rounds, goals=size == MIDDLE)
            lines += more
    if MIDDLE in took and sizes[-1] in took and sizes[-1] > MIDDLE:
        lines += growth(took, MIDDLE, sizes[-1])
    if "servers" in wanted:
        lines += servers(folder, indexes[sizes[-1]], sizes[-1], args.rounds)
    if "peers" in wanted and MIDDLE in indexes:
        lines += peers.comparison(indexes[MIDDLE], folder, args.rounds // 2)
    print(f"\nMachine: {machine()}\n\n{table(lines)}")


def growth(took: dict[int, dict[str, float]], small: int, large: int) -> list[Line]:
    """What a doubling of the vectors does to each search, over the doublings from one size to the other."""
    doublings = math.log2(large / small)
    factors = {name: (took[large][name] / took[small][name]) ** (1 / doublings) for name in took[small]}
    return [
        at_most("growth", f"each doubling from {small:,} to {large:,}: {name}", factor, 2.3, "x the time")
        for name, factor in factors.items()
        if name != READ  # the machine's own: a small corpus may fit into its cache
    ]


def servers(folder: Path, index: Path, size: int, rounds: int) -> list[Line]:
    pi = Pi(folder / "pi")
    serving.warm(pi, index)
    matrix_bytes = size * 1536
    return [
        *serving.starting(pi, index, rounds),
        *serving.sharing(pi, index, matrix_bytes),
        *serving.swapping(pi, index, matrix_bytes),
        *serving.limited(pi, index),
    ]


if __name__ == "__main__":
    main()

"""What a sync costs: bytes on the wire, and the time of runs and of DigUp's own commits beside each other.

    python -m tests.bench.sync [MEGABYTES]

The index has 140 MB unless told otherwise. Everything is on this machine: the real script, sqlite3, rsync,
`receive` and publisher, without ssh. So the ratios count, not the seconds.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.sync.rig import Laptop, Pi, sent

RUNS = 3
BYTES_PER_PASSAGE = 3040


@contextmanager
def writing(laptop: Laptop, waits: list[float]) -> Iterator[None]:
    """DigUp commits all the while; afterwards `waits` holds how long each commit took, in milliseconds."""
    writer = laptop.start_writer()
    try:
        yield
    finally:
        writer.kill()
        lines = writer.communicate()[0].splitlines()
        waits.extend(float(line.split()[1]) for line in lines if line.count(" ") == 1)


def timed_runs(laptop: Laptop) -> float:
    """Seconds of a run that takes a snapshot and sends it; the median of a few."""
    seconds = []
    for _ in range(RUNS):
        laptop.change_rows(200)
        began = time.perf_counter()
        laptop.sync()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def say(what: str, value: str) -> None:
    print(f"{what:<52}{value:>20}", flush=True)


def measure_bytes(laptop: Laptop) -> None:
    record = laptop.counting_rsync()
    laptop.sync()
    size = (laptop.folder / "index.sqlite").stat().st_size
    say("index", f"{size / 1e6:.0f} MB")
    say("first delivery, file data", f"{sent(record)[0] / size:.3f} of it")
    laptop.sync()
    say("nothing changed, all that rsync sends", f"{sent(record)[1]} bytes")
    laptop.change_rows(200)
    laptop.sync()
    data, _ = sent(record)
    say("200 rows changed, file data", f"{data / 1e6:.2f} MB")
    say("", f"{data / size:.4f} of it")
    del laptop.settings["DIGUP_RSYNC"]


def measure_times(laptop: Laptop) -> None:
    alone: list[float] = []
    beside: list[float] = []
    quiet = timed_runs(laptop)
    with writing(laptop, alone):
        time.sleep(RUNS * quiet)  # as long as the runs that it is compared with
    with writing(laptop, beside):
        busy = timed_runs(laptop)
    say("a run beside a busy writer, to a quiet one", f"{busy / quiet:.2f} x")
    for name, part in (("median", 0.5), ("99 of 100", 0.99), ("longest", 1.0)):
        values = [sorted(waits)[int(part * (len(waits) - 1))] for waits in (beside, alone)]
        say(f"a commit beside runs, to one without: {name}", f"{values[0] / values[1]:.2f} x")
    say("longest commit, to the length of a run", f"{max(beside) / 1000 / busy:.3f} x")
    say("commits during the runs", str(len(beside)))


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 140
    with tempfile.TemporaryDirectory() as folder:
        laptop = Laptop(Path(folder) / "mac", Pi(Path(folder) / "pi"))
        laptop.fill_large(int(megabytes * 1e6 / BYTES_PER_PASSAGE))
        measure_bytes(laptop)
        measure_times(laptop)


if __name__ == "__main__":
    main()

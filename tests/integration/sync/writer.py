"""DigUp at work: commits to INDEX every 4 ms, each time with the sum that every copy must agree with.

    python writer.py INDEX

Prints a line for each commit: its number, and how long it took in milliseconds.
"""

from __future__ import annotations

import sqlite3
import sys
import time


def main() -> None:
    database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
    database.execute("PRAGMA synchronous = NORMAL")
    total = database.execute("SELECT sum(size) FROM files").fetchone()[0] or 0
    number = 0
    while True:
        number += 1
        total += number
        began = time.perf_counter()
        database.execute("BEGIN IMMEDIATE")
        database.execute(
            "INSERT INTO files(path, kind, size, mtime, inode, device) VALUES(?, 'doc', ?, 1, 1, 1)",
            (f"/w/{time.time_ns()}", number),
        )
        database.execute("INSERT OR REPLACE INTO meta VALUES('sum', ?)", (total,))
        database.execute("COMMIT")
        print(number, (time.perf_counter() - began) * 1000, flush=True)
        time.sleep(0.004)


if __name__ == "__main__":
    main()

"""A laptop's delivery as it lies in landing/ when all of it has arrived: two small databases and a manifest.

    python -m tests.hosts.delivery FOLDER

It stands at the end of the first journey (a changed file travels to the Pi), so that a host without a laptop
has something to publish. There are no vectors: the hosts search by words.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from tests.doubles.digup import Index, Sample

HOME = "/Users/ana"
SAMPLES = (
    Sample(
        "Documents/Lease Lindenstrasse.pdf",
        "pdf",
        ("The tenant pays 1,250 euros a month.", "Dogs and parrots need the landlord's written consent."),
    ),
    Sample("Documents/Invoice.pdf", "pdf", ("Invoice RE-2024-0815 for a bicycle repair.",)),
    Sample("src/kettle.py", "code", ("def boil_water(litres):\n    return litres * 4186 * 80\n",)),
)


def deliver(folder: Path) -> None:
    """Fills an empty folder with the databases, each one self-contained, and manifest.json."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as live:
        with Index(Path(live), home=HOME) as index:
            for sample in SAMPLES:
                index.add(sample)
        files = {name: _snapshot(Path(live, name), folder / name) for name in ("index.sqlite", "code.sqlite")}
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    manifest = {"format": 1, "source": "laptop", "home": HOME, "schema": 5, "taken_at": now, "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _snapshot(database: Path, copy: Path) -> dict[str, int | str]:
    with closing(sqlite3.connect(database)) as db:
        db.execute("VACUUM INTO ?", (str(copy),))
    data = copy.read_bytes()
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


if __name__ == "__main__":
    deliver(Path(sys.argv[1]))

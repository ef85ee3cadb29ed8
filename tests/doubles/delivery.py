"""A Pi to which a laptop has delivered: landing filled as the laptop's script does it, then published."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from hermes_digup.publishing import Outcome, publish
from tests.doubles import digup
from tests.doubles.model import HashedWords

SAMPLES = Path(digup.__file__).parent / "samples"
HOME = "/Users/ana"
SOURCES = Path(".local/share/hermes-digup/sources")


def build_index(folder: Path) -> list[Path]:
    """DigUp's two databases of the sample files, their vectors made from words."""
    digup.build(SAMPLES, folder, home=HOME, model=HashedWords())
    return [folder / "index.sqlite", folder / "code.sqlite"]


def deliver(home: Path, machine: str, databases: Sequence[Path], *, confirmed: datetime) -> Outcome:
    """Leaves databases in a machine's landing below a Pi's home folder, and publishes them."""
    source = home / SOURCES / machine
    landing = source / "landing"
    landing.mkdir(parents=True, exist_ok=True)
    files = {}
    for database in databases:
        content = database.read_bytes()
        # As rsync does: a new file takes the place of the old one, which a generation may still hold.
        arriving = landing / f".{database.name}.part"
        arriving.write_bytes(content)
        arriving.replace(landing / database.name)
        files[database.name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    time = confirmed.strftime("%Y-%m-%dT%H:%M:%SZ")
    manifest = {
        "format": 1,
        "source": machine,
        "home": HOME,
        "schema": 5,
        "taken_at": time,
        "confirmed_at": time,
        "script_version": "0.1.0",
        "files": files,
    }
    (landing / "confirmed.json").write_text(json.dumps({"format": 1, "confirmed_at": time}))
    (landing / "manifest.json").write_text(json.dumps(manifest))
    return publish(source)

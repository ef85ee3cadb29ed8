"""Three servers on one Pi, as gateway, chat and cron start them, over an index as large as a real one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest
from tests.doubles.delivery import HOME, SOURCES, deliver
from tests.doubles.digup import Index, Sample
from tests.doubles.model import HashedWords
from tests.doubles.omlx import OmlxDouble

VECTORS = 62_000
SIZE = VECTORS * 768 * 2
GEMMA = "google/embeddinggemma-2"
KEY = "key-of-the-pi-0123456789"
CLIENT = {"name": "three servers", "version": "1"}
MESSAGES = (
    ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}),
    ("tools/call", {"name": "search_files", "arguments": {"query": "a lighthouse at dusk"}}),
)


@pytest.fixture
def large_pi(tmp_path: Path) -> Path:
    """A Pi with that many pictures, of which no two look alike."""
    folder = tmp_path / "digup"
    with Index(folder, home=HOME, model=HashedWords()) as index:
        index.add(Sample("Pictures/Dusk.jpg", "image", ("",), fields={"shows": "a lighthouse at dusk"}))
        db = index.database("index.sqlite")
        one = db.execute("SELECT file, kind, modality FROM segments WHERE vec IS NOT NULL").fetchone()
        found = np.random.default_rng(7).standard_normal((VECTORS, 768)).astype(np.float32)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        rows = ((*one, place, row.tobytes()) for place, row in enumerate(found.astype(np.float16)))
        db.execute("BEGIN")
        db.executemany("INSERT INTO segments(file, kind, modality, loc, vec) VALUES(?, ?, ?, ?, ?)", rows)
        db.execute("COMMIT")
    confirmed = datetime.now(timezone.utc)
    assert deliver(tmp_path, "macbook", [folder / "index.sqlite"], confirmed=confirmed).state == "published"
    return tmp_path


@contextmanager
def server(home: Path, environ: dict[str, str]) -> Iterator[int]:
    """A server that has answered one question by meaning; its process."""
    command = [sys.executable, "-m", "hermes_digup", "serve", "--results", "both"]
    with subprocess.Popen(
        command, env={"HOME": str(home), **environ}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        for number, (method, params) in enumerate(MESSAGES):
            asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            answer = next(line for line in map(json.loads, process.stdout) if line.get("id") == number)
        hits = answer["result"]["structuredContent"]["hits"]
        assert hits[0]["matched"] in ("meaning", "both"), answer
        yield process.pid
        process.stdin.close()


def mapped(process: int, name: str) -> dict[str, int]:
    """Bytes per row of /proc/PID/smaps for the mappings of a file whose name ends so."""
    sums = {"Rss": 0, "Pss": 0, "Private_Dirty": 0}
    ours = False
    for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            ours = line.endswith(name)
        elif ours and line.split(":")[0] in sums:
            sums[line.split(":")[0]] += int(line.split()[1]) * 1024
    return sums


def own(process: int) -> int:
    """Bytes that a process shares with nobody."""
    rows = Path(f"/proc/{process}/smaps_rollup").read_text()
    return sum(int(kilobytes) for kilobytes in re.findall(r"Private_\w+: +(\d+)", rows)) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how memory is shared")
def test_three_servers_share_one_copy_of_the_vectors(large_pi: Path, tmp_path_factory) -> None:
    packed = next((large_pi / SOURCES / "macbook" / "generations").rglob("*.vectors-*.bin"))
    assert packed.stat().st_size >= SIZE
    with (
        OmlxDouble(tmp_path_factory.mktemp("omlx"), api_key=KEY, model=HashedWords()) as omlx,
        ExitStack() as servers,
    ):
        omlx.add_model(GEMMA)
        environ = {"DIGUP_EMBED_URL": omlx.url, "DIGUP_EMBED_API_KEY": KEY}
        processes = [servers.enter_context(server(large_pi, environ)) for _ in range(3)]
        shares = [mapped(process, packed.name) for process in processes]
        private = [own(process) for process in processes]
    assert min(share["Rss"] for share in shares) > 0.9 * SIZE, shares
    assert sum(share["Pss"] for share in shares) < 1.1 * packed.stat().st_size, shares
    assert max(share["Private_Dirty"] for share in shares) == 0, shares
    assert max(private) < SIZE, private  # nor is there a copy anywhere else

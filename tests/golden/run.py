#!/usr/bin/env python3
"""Compares this package with results that DigUp's own code computed.

    python tests/golden/run.py [FOLDER] [--way opened|delivered] [--sqlite MODULE] [--show N]

FOLDER is laid out like this one: `make_index.py`, `compare.py` and golden files (`*.json.gz`, `*.json`).
Every index is built by that folder's `make_index.py`, every query and every function case goes through the
package's public functions, and that folder's `compare.py` judges. One line a file; exit status 1 when
anything differs.

Each index is asked both ways, or the one that is named: opened as a plain folder, rows read; and delivered
into a landing, published, packed and mapped, as on the Pi. --sqlite names a module to use in place of
`sqlite3`.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import importlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
SHOWN = 5


class Verdict(NamedTuple):
    """How one golden file went. `mismatches` counts those of every way."""

    name: str
    ways: Sequence[str]
    cases: int
    mismatches: int
    details: str
    seconds: float

    def __str__(self) -> str:
        how = ", ".join([*self.ways, f"{self.seconds:.1f} s"])
        line = f"{self.name}: {self.cases} cases, {self.mismatches} mismatches ({how})"
        return line + ("\n" + self.details if self.mismatches else "")


def golden_files(folder: Path) -> list[Path]:
    """The golden files of a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.name.endswith((".json", ".json.gz")))


def judge(path: Path, *, ways: Sequence[str] = ("opened", "delivered"), show: int = SHOWN) -> Verdict:
    """Runs one golden file; its index is built once for all ways."""
    start = time.monotonic()
    golden = _load(path)
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        work = Path(name)
        if "units" in golden:
            ways, problems = ["called"], []
            answers = [{"units": [unit(case) for case in golden["units"]]}]
        else:
            built, problems = _built(golden["index"], path.parent, work)
            answers = []
            for way in ways:
                results, more = _searched(golden, built, work / way, way)
                answers.append(results)
                problems += more
        compared = [_compared(path, results, work / "results.json", show) for results in answers]
    cases, mismatches, details = zip(*compared, strict=True)
    lines = "\n".join(filter(None, [*problems, *details]))
    total = sum(mismatches) + len(problems)
    return Verdict(path.name, ways, max(cases), total, lines, time.monotonic() - start)


def unit(case: dict[str, Any]) -> Any:
    """What the package says for one function case."""
    function = FUNCTIONS.get(case["f"])
    return function(case) if function else f"no function {case['f']}"


def _units() -> dict[str, Callable[[dict[str, Any]], Any]]:
    from hermes_digup import ranking as r

    return {
        "normalized": lambda c: r.normalized(c["text"]),
        "lowercased": lambda c: r.lowercased(c["text"]),
        "graphemes": lambda c: r.characters(c["text"]),
        "canonicallyEqual": lambda c: r.canonically_equal(c["text"], c["other"]),
        "hasPrefix": lambda c: r.has_prefix(c["text"], c["other"]),
        "inflects": lambda c: r.is_prefix_script(c["text"]),
        "hasWords": lambda c: r.has_words(c["text"]),
        "keywordText": lambda c: list(r.keyword_text(c["text"])),
        "folderText": lambda c: list(r.folder_text(c["text"], c["home"])),
        "terms": lambda c: r.terms(c["text"]),
        "patterns": lambda c: r.patterns(r.terms(c["text"]), prefix_last=c["prefixLast"]),
        "isLookup": lambda c: r.is_lookup(r.terms(c["text"])),
        "kindHints": lambda c: sorted(r.kind_hints(c["text"])),
        "codeQuery": lambda c: r.code_query(c["text"]),
        "excerpt": lambda c: r.excerpt(c["text"], c["limit"]),
        "matches": lambda c: [list(match) for match in r.matches(c["word"], c["text"])],
        "snippet": lambda c: r.snippet(c["text"], c["terms"]),
        "identifier": lambda c: r.identifier(c["text"]),
        "definition": lambda c: _or_none(r.definition(c["name"], c["text"], c["first"])),
        "firstLine": lambda c: r.first_line(c["words"], c["text"], c["first"]),
        "summary": lambda c: r.summary(c["text"]),
        "meaning": _standout,
    }


def _standout(case: dict[str, Any]) -> list[float]:
    import numpy as np

    from hermes_digup.ranking import standout
    from hermes_digup.records import MODALITIES

    scores = np.array(case["scores"], np.float32)
    modality = np.array([MODALITIES.index(each) for each in case["modality"]], np.int8)
    scale = np.array(case.get("setsScale") or [True] * len(scores), np.bool_)
    return [float(z) for z in standout(scores, modality, scale)]


def _or_none(value: tuple[int, ...] | None) -> list[int] | None:
    return None if value is None else list(value)


def _built(about: dict[str, Any], folder: Path, work: Path) -> tuple[Path, list[str]]:
    """The index of one golden file, and what is wrong with it."""
    make_index = _module(folder / "make_index.py")
    built = Path(make_index.build(about["kind"], about["seed"], str(work / "built")))
    same = make_index.digest(str(built)) == about["digest"]
    return built, [] if same else ["the index that make_index.py built is not the one of this file"]


def _searched(golden: dict[str, Any], built: Path, work: Path, way: str) -> tuple[dict[str, Any], list[str]]:
    """The results of every query of one golden file, and what is wrong with the vectors."""
    from hermes_digup.ranking import sets_scale

    about = golden["index"]
    problems = []
    with WAYS[way](built, work, about) as database:
        rows = database.vector_rows()
        counted = (len(rows.segment), int(sets_scale(rows).sum()))
        if counted != (about["vectors"], about["scaleVectors"]):
            problems.append(f"{way}: vectors and those that set the scale: {counted}")
        results = [_answer(database, query) for query in golden["queries"]]
    return {"results": results}, problems


@contextmanager
def _plain(built: Path, work: Path, about: dict[str, Any]) -> Iterator[Any]:
    """The index as it was built, opened where it is."""
    from hermes_digup.index import Database

    database = Database(built)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def _delivered(built: Path, work: Path, about: dict[str, Any]) -> Iterator[Any]:
    """The index as it comes to the Pi: landed, published, packed and mapped."""
    from hermes_digup.index import Shelf
    from hermes_digup.publishing import publish

    source = work / "sources" / "golden"
    landing = source / "landing"
    landing.mkdir(parents=True)
    # A code index never travels alone; which main index goes with it makes no difference to its answers.
    for name in {built.name, "index.sqlite"}:
        shutil.copyfile(built, landing / name)
    _write_manifest(landing, about)
    outcome = publish(source)
    if outcome.state != "published":
        raise SystemExit(f"the index was not published: {outcome}")
    shelf = Shelf(source, source.name)
    try:
        with shelf.lease() as snapshot:
            database = snapshot.code if built.name == "code.sqlite" else snapshot.main
            if database is None or database.vectors_from != "packed":
                raise SystemExit(f"the packed vectors were not used: {snapshot.warnings}")
            yield database
    finally:
        shelf.close()


def _write_manifest(landing: Path, about: dict[str, Any]) -> None:
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    files = {
        path.name: {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in sorted(landing.iterdir())
    }
    manifest = {
        "format": 1,
        "source": "golden",
        "home": about["home"],
        "schema": 5,
        "taken_at": now,
        "confirmed_at": now,
        "files": files,
    }
    (landing / "manifest.json").write_text(json.dumps(manifest), "utf-8")


def _answer(database: Any, query: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    from hermes_digup.ranking import Query, search

    vector = None
    if query["vector"] is not None:
        vector = np.frombuffer(base64.b64decode(query["vector"]), "<f4")
    asked = Query(
        query["text"],
        vector,
        kinds=None if query["kinds"] is None else frozenset(query["kinds"]),
        limit=query["limit"],
        z_gate=query["zGate"],
        word_weight=query["wordWeight"],
        prefix_last=query["prefixLast"],
    )
    results = search(database, asked)
    return {
        "id": query["id"],
        "strongCount": results.strong_count,
        "hits": [
            {
                "path": hit.path,
                "kind": hit.kind,
                "score": hit.score,
                "z": hit.z,
                "cosine": hit.cosine,
                "keywordRank": hit.keyword_rank,
                "segment": hit.segment_kind,
                "segmentID": hit.segment_id,
                "loc": hit.loc,
                "locEnd": hit.loc_end,
                "excerpt": hit.excerpt,
                "focus": hit.focus,
                "modified": hit.modified_unix,
                "size": hit.size,
                "info": dict(hit.info),
            }
            for hit in results.hits
        ],
    }


def _compared(golden: Path, results: dict[str, Any], out: Path, show: int) -> tuple[int, int, str]:
    out.write_text(json.dumps(results), "utf-8")
    compare = golden.parent / "compare.py"
    command = [sys.executable, str(compare), str(golden), str(out), "--show", str(show)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    details, _, last = done.stdout.rstrip().rpartition("\n")
    agreed = re.search(r"(\d+) of (\d+) agree$", last)
    if agreed is None:
        return 0, 1, done.stdout + done.stderr
    good, cases = int(agreed[1]), int(agreed[2])
    bad = max(cases - good, int(done.returncode != 0))
    return cases, bad, details if bad else ""


def _load(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    loaded: dict[str, Any] = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    return loaded


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"golden_{abs(hash(path))}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FUNCTIONS = _units()
WAYS = {"opened": _plain, "delivered": _delivered}


def main() -> int:
    """Runs a folder; returns the exit status."""
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_written)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE)
    parser.add_argument("--way", choices=WAYS, action="append", dest="ways")
    parser.add_argument("--sqlite", metavar="MODULE")
    parser.add_argument("--show", type=int, default=SHOWN)
    args = parser.parse_args()
    if args.sqlite:
        sys.modules["sqlite3"] = importlib.import_module(args.sqlite)
        print(f"SQLite {sys.modules['sqlite3'].sqlite_version} of {args.sqlite}", flush=True)
    verdicts = []
    for path in golden_files(args.folder):
        verdicts.append(judge(path, ways=args.ways or tuple(WAYS), show=args.show))
        print(verdicts[-1], flush=True)
    if not verdicts:
        print(f"no golden files in {args.folder}")
    return 0 if verdicts and not any(verdict.mismatches for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())

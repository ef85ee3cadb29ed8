"""Meaning, words, lookups and scores once more, in the plainest way: loops over rows, DigUp's own statement.

The properties compare the package with this. Slow on purpose, and sharing nothing with the package but the
functions that read a query (terms, patterns, hints), which the golden cases hold.
"""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np

from hermes_digup.ranking import Query, identifier, is_lookup, kind_hints, patterns, terms

KNOWN = {"screenshot", "image", "pdf", "doc", "audio", "video", "code"}
KEYWORDS = """
    SELECT s.file, s.id, snippet(fts, 1, '«', '»', '…', 12), fts.original
    FROM fts JOIN segments s ON s.id = fts.rowid
    WHERE fts MATCH ? {inside}
    ORDER BY bm25(fts, 3.0, 1.0) LIMIT 1000
"""


def plain_search(path: Path, query: Query) -> list[tuple]:
    """(file, score, z, cosine, keyword rank, segment) of every hit, best first."""
    with closing(sqlite3.connect(path)) as db:
        kinds = dict(db.execute("SELECT id, kind FROM files"))
        paths = dict(db.execute("SELECT id, path FROM files"))
        allowed = {
            file
            for file, kind in kinds.items()
            if (query.kinds is None or (kind in query.kinds and kind in KNOWN))
            and (query.folder is None or query.folder.contains(paths[file]))
        }
        is_code = path.name == "code.sqlite"
        name = identifier(query.text) if is_code else None
        words = terms(query.text)
        sought = (
            ['"' + " ".join(name) + '"']
            if name is not None
            else patterns(words, prefix_last=query.prefix_last)
        )
        best = best_by_meaning(db, query, allowed)
        kept = kept_by_words(db, query, sought, allowed, paths)
        coverage = dict.fromkeys(kept, 0.0)
        for pattern in sought:
            matching = "SELECT DISTINCT s.file FROM fts JOIN segments s ON s.id = fts.rowid WHERE fts MATCH ?"
            for (file,) in db.execute(matching, (pattern,)):
                if file in kept:
                    coverage[file] += 1 / len(sought)
    weight = query.word_weight if query.word_weight is not None else (1.0 if is_code else 2.0)
    by_meaning = 1.0
    if name is not None or is_lookup(words):
        by_meaning, weight = 0.5, 2 * weight
    found = []
    for file in allowed:
        z, cosine, segment = best.get(file, (None, None, None))
        rank, row = kept.get(file, (None, None))
        if not ((z is not None and z >= query.z_gate) or coverage.get(file, 0.0) >= 0.5):
            continue
        score = by_meaning * max(z or 0.0, 0.0) + weight * coverage.get(file, 0.0) ** 1.5
        score += 1.0 if kinds[file] in kind_hints(query.text) else 0.0
        points_at = segment if z is not None and (z >= query.z_gate or rank is None) else row
        found.append((file, score, z, cosine, rank, points_at))
    found.sort(key=lambda hit: (-hit[1], hit[0]))
    return found[: query.limit]


def best_by_meaning(db, query, allowed):
    """file -> (z, cosine, segment)"""
    if query.vector is None or len(query.vector) != 768:
        return {}
    asked = [float(value) for value in query.vector]
    rows = []
    for segment, file, kind, modality, loc, blob, file_kind, info in db.execute(
        "SELECT s.id, s.file, s.kind, s.modality, s.loc, s.vec, f.kind, f.info FROM segments s "
        "JOIN files f ON f.id = s.file WHERE s.vec IS NOT NULL ORDER BY s.id"
    ):
        if len(blob) != 1536:
            continue
        stored = np.frombuffer(blob, "<f2")
        cosine = math.fsum(float(a) * b for a, b in zip(stored[:40], asked[:40], strict=True))
        place = int(loc or 0)
        about = json.loads(info or "{}")
        pages = int(about.get("pages") or 0) if isinstance(about, dict) else 0
        if file_kind == "pdf":
            later = kind != "chunk" and pages > 50 and place > 30
        else:
            later = kind == "chunk" and place > 40
        modality = modality if modality in ("text", "image", "audio") else "none"
        rows.append((segment, file, modality, cosine, not later))
    if not rows:
        return {}
    setting = [row for row in rows if row[4]]
    whole = sum(row[3] for row in setting) / max(len(setting), 1)
    averages = {}
    for modality in ("none", "text", "image", "audio"):
        mine = [row[3] for row in setting if row[2] == modality]
        averages[modality] = sum(mine) / len(mine) if len(mine) >= 20 else whole
    centred = [row[3] - averages[row[2]] for row in setting]
    middle = sum(centred) / max(len(centred), 1)
    spread = max(math.sqrt(sum((value - middle) ** 2 for value in centred) / max(len(centred), 1)), 0.02)
    best = {}
    for segment, file, modality, cosine, _ in rows:
        z = (cosine - averages[modality] - middle) / spread
        if file in allowed and (file not in best or z > best[file][0]):
            best[file] = (z, cosine, segment)
    return best


def kept_by_words(db, query, sought, allowed, paths):
    """file -> (keyword rank, segment)"""
    if not sought:
        return {}
    inside = ""
    if query.folder is not None:  # the one thing DigUp does not have: a folder is looked for before any limit
        numbers = [str(file) for file, path in paths.items() if query.folder.contains(path)]
        inside = f"AND s.file IN ({','.join(numbers)})"
    kept = {}
    for file, segment, _, _ in db.execute(KEYWORDS.format(inside=inside), (" OR ".join(sought),)):
        if len(kept) == 100:
            break
        if file in allowed and file not in kept:
            kept[file] = (len(kept) + 1, segment)
    return kept

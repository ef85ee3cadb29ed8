"""Runs in the peers' own environment: sqlite-vec and LanceDB over the same rows, timed on demand (a pipe).

One JSON line for each question: {"what": ..., "words": ..., "vector": [...]}; the answer is its seconds.
"""

from __future__ import annotations

import importlib
import json
import sqlite3
import sys
import time
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
import sqlite_vec
from lancedb.rerankers import RRFReranker

ROWS = """
    SELECT s.id, s.vec, coalesce(t.body, '') FROM segments s LEFT JOIN fts t ON t.rowid = s.id
    WHERE s.vec NOTNULL
"""
HITS = 20


def lance_table(folder: Path, rows: list[tuple[int, bytes, str]], vectors: np.ndarray) -> lancedb.table.Table:
    """Vectors without an index, so that its answers are exact as ours; a full-text index over the texts."""
    columns = {
        "id": pa.array([row[0] for row in rows]),
        "body": pa.array([row[2] for row in rows]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
    }
    table = lancedb.connect(folder / "lance").create_table("t", pa.table(columns), mode="overwrite")
    table.create_fts_index("body")
    return table


def vec_database(path: Path, rows: list[tuple[int, bytes, str]], vectors: np.ndarray) -> sqlite3.Connection:
    path.unlink(missing_ok=True)
    with_extensions = hasattr(sqlite3.Connection, "enable_load_extension")
    module = sqlite3 if with_extensions else importlib.import_module("pysqlite3")
    database: sqlite3.Connection = module.connect(path)
    database.enable_load_extension(True)
    sqlite_vec.load(database)
    database.execute("CREATE VIRTUAL TABLE v USING vec0(e float[768] distance_metric=cosine)")
    pairs = ((row[0], vector.tobytes()) for row, vector in zip(rows, vectors, strict=True))
    database.executemany("INSERT INTO v(rowid, e) VALUES(?, ?)", pairs)
    database.commit()
    return database


def main() -> None:
    index, folder = Path(sys.argv[1]), Path(sys.argv[2])
    rows = sqlite3.connect(index).execute(ROWS).fetchall()
    vectors = np.frombuffer(b"".join(row[1] for row in rows), "<f2").reshape(-1, 768).astype(np.float32)
    table, database = lance_table(folder, rows, vectors), vec_database(folder / "vec.db", rows, vectors)
    del rows, vectors
    rerank = RRFReranker()

    def hybrid(query: np.ndarray, words: str) -> object:
        search = table.search(query_type="hybrid").vector(query).text(words).distance_type("cosine")
        return search.rerank(rerank).limit(HITS).to_list()

    def vec(query: np.ndarray, words: str) -> object:
        knn = "SELECT rowid, distance FROM v WHERE e MATCH ? AND k = 100"
        return database.execute(knn, (query.tobytes(),)).fetchall()

    ways = {"lance": hybrid, "vec": vec}
    print(json.dumps({"lance": lancedb.__version__, "vec": sqlite_vec.__version__}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        query = np.array(asked["vector"], np.float32)
        start = time.perf_counter()
        ways[asked["what"]](query, asked["words"])
        print(json.dumps(time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()

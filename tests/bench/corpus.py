"""Made-up corpora of any size, the same content for the same size: DigUp databases with vectors and words.

Words follow Zipf's law over a vocabulary of word-like strings; every file has topic words of its own. Vectors
are random unit vectors with a shared direction, so that cosines do not centre on zero, as real ones do not.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
from tests.doubles.digup import SCHEMA

VERSION = 1  # of what is made here: part of a corpus's folder
HOME = "/Users/ana"

_VOCABULARY = 60_000
_WORDS_A_SEGMENT = 215
_TOPIC_SHARE = 0.08
_PICTURES = 0.15
_WITH_ORIGINAL = 0.2
_BATCH = 1000
_FOLDERS = ("Documents", "Documents/Taxes", "Documents/House", "Desktop", "Downloads", "Books", "Work")
_COMMON_FROM = 3


def corpus(folder: Path, vectors: int) -> Path:
    """The database with this many vectors, made in a folder below `folder` when it is not there yet."""
    home = folder / f"corpus-{VERSION}" / str(vectors)
    done = home / "index.sqlite"
    if not done.is_file():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        print(f"Making the corpus of {vectors:,} vectors in {home} ...", flush=True)
        _make(home / "work.sqlite", vectors)
        (home / "work.sqlite").rename(done)
    return done


def vocabulary() -> list[str]:
    """Word-like strings, the frequent ones first and short."""
    chance = np.random.default_rng(5)
    onsets = [*"bcdfghklmnprstvw", "st", "tr", "pl", "gr"]
    vowels = [*"aeiou", "ea", "ou"]
    codas = "nrstlmdk"
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        syllables = 1 + (len(words) > 300) + int(chance.integers(0, 2))
        word = "".join(onsets[chance.integers(20)] + vowels[chance.integers(7)] for _ in range(syllables))
        words.setdefault(word + codas[chance.integers(8)])
    return list(words)


def unit_vectors(chance: np.random.Generator, count: int) -> np.ndarray:
    """Random directions with something in common. Shapes: (count, 768) float32."""
    rows = chance.standard_normal((count, 768), dtype=np.float32)
    rows += np.random.default_rng(1).standard_normal(768).astype(np.float32) * 0.7
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class _Writer:
    """Draws files and their segments until there are enough vectors."""

    def __init__(self, database: sqlite3.Connection, vectors: int) -> None:
        self._database, self._missing = database, vectors
        self._chance = np.random.default_rng(6)
        self._words = np.array(vocabulary(), dtype=object)
        share = 1 / (np.arange(_VOCABULARY) + 2.7)
        self._reach = np.cumsum(share / share.sum())
        self._segments: list[tuple[object, ...]] = []
        self._texts: list[tuple[object, ...]] = []
        self._file = self._segment = 0

    def write(self) -> None:
        while self._missing > 0:
            self._add_file()
            if len(self._segments) >= _BATCH:
                self._flush()
        self._flush()

    def _add_file(self) -> None:
        chance = self._chance
        self._file += 1
        count = min(int(chance.pareto(1.2) * 4) + 1, 400, self._missing)
        text_kind = "pdf" if chance.random() < 0.4 else "doc"
        kind = "image" if count < 8 and chance.random() < _PICTURES else text_kind
        name = " ".join(self._words[chance.integers(50, 20_000, 3)]) + f" {self._file}.{kind}"
        folder = _FOLDERS[chance.integers(len(_FOLDERS))]
        self._missing -= count if kind != "image" else 1
        info = json.dumps({"pages": str(count)} if kind == "pdf" else {"chunks": str(count)})
        self._database.execute(
            "INSERT INTO files VALUES(?,?,?,?,?,?,0,'done',NULL,?,0)",
            (self._file, f"{HOME}/{folder}/{name}", kind, 5000, 1.7e9 + self._file, self._file, info),
        )
        self._add("name", "none", None, name, folder.replace("/", " "), None)
        if kind == "image":
            self._add("image", "image", None, "", None, self._file)
            return
        topic = chance.integers(200, _VOCABULARY, 12)
        for place in range(1, count + 1):
            text = self._text(topic)
            self._add("page" if kind == "pdf" else "chunk", "text", place, "", text, self._file)

    def _text(self, topic: np.ndarray) -> str:
        chance = self._chance
        length = max(int(chance.normal(_WORDS_A_SEGMENT, 40)), 20) if chance.random() > 0.1 else 60
        drawn = np.searchsorted(self._reach, chance.random(length))
        on_topic = chance.random(length) < _TOPIC_SHARE
        drawn[on_topic] = topic[chance.integers(0, len(topic), int(on_topic.sum()))]
        return " ".join(self._words[np.minimum(drawn, _VOCABULARY - 1)])

    def _add(  # noqa: PLR0913 - the columns of a row
        self, kind: str, modality: str, place: int | None, name: str, text: str | None, vector: int | None
    ) -> None:
        self._segment += 1
        excerpt = text[:240] if text and kind != "name" else None
        self._segments.append((self._segment, self._file, kind, modality, place, excerpt, vector is not None))
        if text is not None:
            written = text.replace(" ", " … ", 1) if kind != "name" else text
            changed = kind != "name" and self._chance.random() < _WITH_ORIGINAL
            body = written.replace("…", "...") if changed else text
            self._texts.append((self._segment, name, body, written if changed else None))

    def _flush(self) -> None:
        with_vector = [row for row in self._segments if row[-1]]
        blobs = iter(unit_vectors(self._chance, len(with_vector)).astype("<f2"))
        rows = [(*row[:6], next(blobs).tobytes() if row[-1] else None) for row in self._segments]
        self._database.executemany("INSERT INTO segments VALUES(?,?,?,?,?,NULL,?,?)", rows)
        into_fts = "INSERT INTO fts(rowid, name, body, original) VALUES(?,?,?,?)"
        self._database.executemany(into_fts, self._texts)
        self._segments, self._texts = [], []


def _make(path: Path, vectors: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.executescript(SCHEMA)
        database.execute("BEGIN")
        database.execute("INSERT INTO meta VALUES('vector_source', 'made-up@0000001')")
        _Writer(database, vectors).write()
        database.execute("COMMIT")


def drawn_words(database: sqlite3.Connection) -> dict[str, list[str]]:
    """Queries by how often their words occur, each word's share of the text rows measured in this corpus."""
    total = database.execute("SELECT count(*) FROM fts").fetchone()[0]
    every = vocabulary()

    def share(word: str) -> float:
        count = "SELECT count(*) FROM fts WHERE fts MATCH ?"
        return float(database.execute(count, (f'"{word}"',)).fetchone()[0]) / total

    def take(least: float, most: float, first: int) -> list[str]:
        found: list[str] = []
        for word in every[first:]:
            if least <= share(word) <= most:
                found.append(word)
                if len(found) == 3:
                    return found
        raise SystemExit("the corpus has too few words of one frequency")

    common, often = take(0.55, 0.95, _COMMON_FROM), take(0.1, 0.4, 60)
    middling, rare = take(0.01, 0.05, 600), take(0.0002, 0.002, 9000)
    return {
        "1 rare word": rare[:1],
        "3 rare": rare,
        "3 middling": middling,
        "3 frequent": often,
        "3 common": common,
        "5 mixed": [common[0], middling[0], rare[0], often[0], middling[1]],
        "8 mixed": [*common[:2], *often[:2], *middling[:2], *rare[:2]],
        "common + middling": [common[0], middling[0], common[1], middling[1]],
    }

"""The DigUp double writes what the app writes: tables, keyword text, excerpts, places, vectors."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.doubles import digup, digup_text
from tests.doubles.model import HashedWords

HOME = "/Users/ana"
SAMPLES = Path(digup.__file__).parent / "samples"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    digup.build(SAMPLES, folder, home=HOME, model=HashedWords())
    return folder


def rows(database: Path, question: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as db:
        return db.execute(question, values).fetchall()


def segments(database: Path, ending: str) -> list[Any]:
    return rows(
        database,
        "SELECT s.kind, modality, loc, loc_end, excerpt, vec, name, body, original FROM segments s"
        " JOIN files f ON f.id = s.file LEFT JOIN fts ON fts.rowid = s.id WHERE path LIKE ? ORDER BY s.id",
        f"%{ending}",
    )


def test_the_same_samples_give_the_same_bytes(demo: Path, tmp_path: Path) -> None:
    digup.build(SAMPLES, tmp_path, home=HOME, model=HashedWords())

    for name in ("index.sqlite", "code.sqlite"):
        assert (tmp_path / name).read_bytes() == (demo / name).read_bytes()


def test_a_fingerprint_changes_with_a_sample(tmp_path: Path) -> None:
    before = digup.fingerprint(tmp_path)

    (tmp_path / "a.txt").write_text("path: a.txt\nkind: doc\n---\nred fox\n")

    assert digup.fingerprint(tmp_path) != before
    assert digup.fingerprint(tmp_path) == digup.fingerprint(tmp_path)


def test_the_databases_are_of_schema_5_and_in_wal_mode(demo: Path) -> None:
    for name in ("index.sqlite", "code.sqlite"):
        assert rows(demo / name, "PRAGMA user_version") == [(5,)]
        assert (demo / name).read_bytes()[18:20] == b"\x02\x02"
        assert (
            "categories 'L* N* Co M*'"
            in rows(demo / name, "SELECT sql FROM sqlite_master WHERE name = 'fts'")[0][0]
        )


def test_every_file_has_one_name_row_without_the_home_folder(demo: Path) -> None:
    first, *others = segments(demo / "index.sqlite", "Lease agreement Harbour Street 14.pdf")

    assert first[:6] == ("name", "none", None, None, None, None)
    assert first[6:] == ("Lease agreement Harbour Street 14.pdf", "Documents Flat", None)
    assert [(kind, modality, page) for kind, modality, page, *_ in others] == [
        ("page", "text", page) for page in (1, 2, 3, 4)
    ]


def test_a_pages_excerpt_is_one_short_line(demo: Path) -> None:
    page = segments(demo / "index.sqlite", "Lease agreement Harbour Street 14.pdf")[1]

    assert page[4].endswith("…")
    assert len(page[4]) == 241
    assert "\n\n" in page[7]


def test_a_page_with_little_text_is_a_picture(demo: Path) -> None:
    shown = segments(demo / "index.sqlite", "Vaccination record.pdf")[1:]

    assert [(row[0], row[1], row[2], row[4], row[7]) for row in shown] == [
        ("page_image", "image", 1, "Vaccination record", "Vaccination record"),
        ("page_image", "image", 2, None, None),
    ]


def test_screen_text_has_words_and_the_picture_the_vector(demo: Path) -> None:
    picture, text = segments(demo / "index.sqlite", "Boarding pass.png")[1:]

    assert picture[:2] == ("image", "image")
    assert picture[7] is None
    assert text[:2] == ("ocr", "none")
    assert text[5] is None
    assert "Booking K7Q2LM" in text[7]


def test_digits_alone_get_no_vector(demo: Path) -> None:
    _, chunk = segments(demo / "index.sqlite", "Meter readings.txt")

    assert (chunk[0], chunk[1], chunk[5]) == ("chunk", "none", None)
    assert "48213" in chunk[7]


def test_text_that_normalising_changed_is_kept_as_written(demo: Path) -> None:
    changed = segments(demo / "index.sqlite", "تأمين السفر.pdf")[1]
    unchanged = segments(demo / "index.sqlite", "Omas Linsensuppe.txt")[1]

    assert "\u0623" in changed[8]
    assert "\u0623" not in changed[7]
    assert unchanged[8] is None


def test_vectors_are_half_precision_and_of_unit_length(demo: Path) -> None:
    blobs = rows(demo / "index.sqlite", "SELECT vec FROM segments WHERE vec IS NOT NULL")

    lengths = [np.linalg.norm(np.frombuffer(blob, "<f2").astype(np.float32)) for (blob,) in blobs]
    assert {len(blob) for (blob,) in blobs} == {1536}
    assert np.allclose(lengths, 1, atol=1e-3)


def test_a_chunk_was_embedded_with_its_files_name_as_the_title(demo: Path) -> None:
    chunk = segments(demo / "index.sqlite", "Omas Linsensuppe.txt")[1]

    again = HashedWords().embed([f"title: Omas Linsensuppe | text: {chunk[7]}"])[0]

    assert np.frombuffer(chunk[5], "<f2").astype(np.float32) @ again > 0.9999


def test_code_was_embedded_with_its_path_in_the_repository_as_the_title(demo: Path) -> None:
    lines = segments(demo / "code.sqlite", "tidewatch/retry.py")[1]

    again = HashedWords().embed([f"title: tidewatch/tidewatch/retry.py | text: {lines[7]}"])[0]

    assert lines[:4] == ("lines", "text", 1, 24)
    assert lines[4] == "class GaveUp(Exception):"
    assert np.frombuffer(lines[5], "<f2").astype(np.float32) @ again > 0.9999


def test_info_is_what_the_kind_has(demo: Path) -> None:
    info = dict(rows(demo / "index.sqlite", "SELECT path, info FROM files"))

    def of(path: str) -> Any:
        return json.loads(info[f"{HOME}/{path}"])

    assert of("Documents/Talks/Slides backup strategy.pdf") == {"pages": "3", "scanned_pages": "2"}
    assert of("Music/Podcasts/Slow Signals 31.m4a") == {"duration": "80.0"}
    assert of("Documents/Books/Atlas of clouds.pdf") == {
        "pages": "3", "read_end": "3", "read_to": "2", "scanned_pages": "0",
    }  # fmt: skip
    assert info[f"{HOME}/Documents/Old/Scan 0007.pdf"] is None


def test_every_state_of_a_file_is_in_the_demo(demo: Path) -> None:
    states = rows(demo / "index.sqlite", "SELECT DISTINCT state FROM files ORDER BY state")

    assert [state for (state,) in states] == ["done", "failed", "partial", "pending", "skipped"]


def test_without_a_model_there_are_words_and_no_vectors(tmp_path: Path) -> None:
    digup.build(SAMPLES, tmp_path, home=HOME, model=None)

    assert rows(tmp_path / "index.sqlite", "SELECT count(*) FROM segments WHERE modality <> 'none'") == [(0,)]
    assert rows(tmp_path / "index.sqlite", "SELECT count(*) FROM meta") == [(0,)]
    assert rows(tmp_path / "index.sqlite", "SELECT count(*) FROM fts WHERE fts MATCH 'piraeus'") == [(1,)]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[digup.Index]:
    with digup.Index(tmp_path / "index", home=HOME, model=HashedWords()) as index:
        yield index


def test_a_running_app_keeps_what_is_new_in_the_log(index: digup.Index) -> None:
    index.add(digup.Sample("Documents/a.txt", "doc", ("red fox",)))

    assert (index.folder / "index.sqlite-wal").stat().st_size > 0
    assert b"red fox" not in (index.folder / "index.sqlite").read_bytes()
    assert not (index.folder / "code.sqlite").exists()


def test_a_changed_file_keeps_its_number_and_its_name(index: digup.Index) -> None:
    number = index.add(digup.Sample("Documents/a.txt", "doc", ("red fox",)))

    again = index.add(digup.Sample("Documents/a.txt", "doc", ("blue whale",), modified=1_760_000_000.0))

    assert again == number
    bodies = index.database("index.sqlite").execute("SELECT name, body FROM fts").fetchall()
    assert bodies == [("a.txt", "Documents"), ("", "blue whale")]


def test_a_removed_file_leaves_nothing(index: digup.Index) -> None:
    index.add(digup.Sample("Documents/a.txt", "doc", ("red fox",)))

    index.remove("Documents/a.txt")

    db = index.database("index.sqlite")
    for table in ("files", "segments", "fts"):
        assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_a_sample_that_cannot_be_read_leaves_the_index_as_it_was(index: digup.Index) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        index.add(digup.Sample("Documents/a.pdf", "pdf", ("red fox",), fields={"read_to": "many"}))

    assert index.database("index.sqlite").execute("SELECT count(*) FROM files").fetchone() == (0,)


def test_long_documents_are_cut_into_overlapping_pieces() -> None:
    text = " ".join(f"word{number}" for number in range(600))

    pieces = digup_text.pieces(text)

    assert len(pieces) > 2
    assert all(len(piece) <= 1800 for piece in pieces)
    for before, after in itertools.pairwise(pieces):
        start = before.rindex(after.split(" ", 1)[0])
        assert after.startswith(before[start:])
        assert 150 <= len(before) - start <= 200


def test_long_code_without_blocks_hands_two_lines_on() -> None:
    text = "\n".join(f"line {number} of a long table" for number in range(1, 121))

    found = digup_text.stretches(text)

    assert [first for first, _, _ in found][1] == found[0][1] - 1
    assert found[-1][1] == 120


@pytest.mark.parametrize("head", ["path: a.txt\nkind: book", "kind: doc", "path: a.txt\nkind: doc"])
def test_a_text_without_a_head_is_no_sample(head: str) -> None:
    with pytest.raises(ValueError, match="not a sample"):
        digup.read_sample(f"{head}\nno line")

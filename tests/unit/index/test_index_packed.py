"""Packed vectors give the same answers as the rows, and only a file that fits its database is used."""

from __future__ import annotations

import shutil
from contextlib import closing

import numpy as np
import pytest
from tests.unit.index.index_rows import HOME, Rows, direction, small_index

from hermes_digup.index import Database, pack_vectors, packed_name
from hermes_digup.index.kernel import NUMKONG, NUMPY, Kernel, chosen, cosines, is_exact
from hermes_digup.index.owners import read_owners


@pytest.fixture
def packed(tmp_path):
    index = small_index(tmp_path / "index.sqlite")
    out = index.with_name(packed_name(index))
    pack_vectors(index, out)
    return index, out


def opened(index, out):
    with closing(Database(index, packed=out)) as database:
        database.prove()
        return database.vectors_from, " ".join(database.warnings)


def test_packed_vectors_and_rows_are_the_same(packed):
    index, out = packed
    mapped, read = Database(index, packed=out), Database(index)
    query = np.linspace(-1, 1, 768).astype(np.float32)

    assert (mapped.vectors_from, read.vectors_from) == ("packed", "rows")
    assert mapped.cosines(query).tolist() == read.cosines(query).tolist()
    for name in mapped.vector_rows().__slots__:
        ours, theirs = getattr(mapped.vector_rows(), name), getattr(read.vector_rows(), name)
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()
    words = ["rent", "the", "pets"]
    assert mapped.keyword_rows(words, 9, None) == read.keyword_rows(words, 9, None) != []
    assert mapped.files_matching(words, range(9)) == read.files_matching(words, range(9))
    mapped.close()
    read.close()


def test_an_index_without_vectors_is_packed_too(tmp_path):
    with Rows(tmp_path / "index.sqlite") as rows:
        rows.file(f"{HOME}/a.txt")
    out = tmp_path / "vectors"

    pack_vectors(tmp_path / "index.sqlite", out)

    assert opened(tmp_path / "index.sqlite", out) == ("packed", "")


def test_packing_again_gives_the_same_bytes(packed):
    index, out = packed
    before = out.read_bytes()

    pack_vectors(index, out)

    assert out.read_bytes() == before


@pytest.mark.parametrize("place", [0, 8, 12, 16, 30, 60, 70, 100, 4095, 4096, 9000, -4096, -1])
def test_any_changed_byte_is_noticed_and_the_rows_answer(packed, place):
    index, out = packed
    content = bytearray(out.read_bytes())
    content[place] ^= 0x10
    out.write_bytes(content)

    source, warning = opened(index, out)

    assert source == "rows"
    assert "is not used" in warning


@pytest.mark.parametrize("beyond", [-99, 99])
def test_a_file_that_points_outside_itself_is_not_used(packed, monkeypatch, beyond):
    index, out = packed
    monkeypatch.setattr(
        "hermes_digup.index.packed.read_owners",
        lambda connection: read_owners(connection)._replace(order=read_owners(connection).order + beyond),
    )
    pack_vectors(index, out)

    source, warning = opened(index, out)

    assert source == "rows"
    assert "segments that it does not hold" in warning


@pytest.mark.parametrize("change", [lambda c: c[:-1], lambda c: c + b"\0", lambda c: c[:100], lambda c: b""])
def test_a_file_of_another_length_is_not_used(packed, change):
    index, out = packed
    out.write_bytes(change(out.read_bytes()))

    assert opened(index, out)[0] == "rows"


def test_the_vectors_of_another_database_are_not_used(packed, tmp_path):
    _, out = packed
    other = tmp_path / "other" / "index.sqlite"
    small_index(other)
    with Rows(other, tables="") as rows:
        rows.file(f"{HOME}/one more.txt")

    source, warning = opened(other, out)

    assert source == "rows"
    assert "another database" in warning


def test_a_copy_of_the_database_keeps_its_vectors(packed, tmp_path):
    index, out = packed
    copy = tmp_path / "copy.sqlite"
    shutil.copyfile(index, copy)

    assert opened(copy, out) == ("packed", "")


def test_a_missing_file_is_said(packed, tmp_path):
    index, _ = packed

    source, warning = opened(index, tmp_path / "nothing")

    assert source == "rows"
    assert "cannot be read" in warning


@pytest.mark.parametrize("kernel", [NUMKONG, NUMPY])
def test_both_kernels_are_exact_to_float32(kernel):
    assert is_exact(kernel)


def test_both_kernels_and_any_number_of_threads_give_the_same_bits():
    random = np.random.default_rng(6)
    matrix = random.standard_normal((20_777, 768), np.float32).astype(np.float16)
    query = random.standard_normal(768, np.float32) / 28

    one, three = cosines(matrix, query, kernel=NUMPY, threads=1), cosines(matrix, query, threads=3)

    assert chosen() == NUMKONG
    assert three.tolist() == one.tolist()
    assert np.abs(one - matrix.astype(np.float64) @ query).max() < 1e-4


@pytest.mark.parametrize("kernel", [NUMKONG, NUMPY])
def test_equal_vectors_get_equal_scores_wherever_they_stand(kernel):
    random = np.random.default_rng(5)
    row, query = (random.standard_normal(768).astype(np.float32) for _ in range(2))
    matrix = np.repeat(row.astype(np.float16)[None], 1003, axis=0)

    assert len(set(cosines(matrix, query, kernel=kernel).tolist())) == 1


@pytest.mark.parametrize("kernel", [NUMKONG, NUMPY])
def test_the_smallest_and_largest_halves_count(kernel):
    matrix = np.stack(
        [direction(1, 6e-8), direction(1, 6.5e4), direction(1, -(2.0**-15)), direction(2)]
    ).astype(np.float16)

    expected = matrix[:, 1].astype(np.float32)

    assert cosines(matrix, direction(1), kernel=kernel).tolist() == pytest.approx(expected.tolist(), rel=1e-6)


def test_a_kernel_that_is_wrong_is_found_out():
    assert is_exact(Kernel("slow", lambda rows, room: np.copyto(room, rows)))
    assert not is_exact(Kernel("coarse", lambda rows, room: np.round(rows.astype(np.float32), 3, out=room)))

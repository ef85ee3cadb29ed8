"""The vectors of one database packed into one file that all servers map. Written once, at publishing.

Layout, little-endian: a header of 4,096 bytes (see `_HEADER`), the matrix, then the columns, each section at
the next multiple of 4,096. The header names the database it was made from and carries a checksum of
everything.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

import numpy as np

from hermes_digup.index.door import connect, reading
from hermes_digup.index.vectors import COLUMNS, VECTOR_BYTES, batches, by_name, rows_from
from hermes_digup.records import DIMENSIONS, VectorRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

PACKED_FORMAT: Final = 1

_MAGIC: Final = b"DIGUPVEC"
# magic, format, dimensions, vectors, vectors passed over, fingerprint of the database, checksum
_HEADER: Final = struct.Struct("<8sIIQQ32sI")
_PAGE: Final = 4096
_SAMPLES: Final = 16
_CHUNK: Final = 1 << 20
_COLUMN_TYPES: Final = dict(zip(COLUMNS, ("<i8", "<i8", "<i4", "<i4", "<i1", "<i1", "<i1"), strict=True))


class Packed(NamedTuple):
    """A packed file, mapped. Shapes: matrix (n, 768)."""

    rows: VectorRows
    matrix: NDArray[np.float16]
    passed_over: int


class UnfitError(Exception):
    """A packed file that is not this database's, or not of this format: the rows are read instead."""


class _Layout(NamedTuple):
    starts: dict[str, int]
    size: int


def packed_name(database: Path) -> str:
    """The file name of a database's packed vectors, beside it: `index.sqlite` gives `index.vectors-1.bin`."""
    return f"{database.stem}.vectors-{PACKED_FORMAT}.bin"


def pack_vectors(database: Path, out: Path) -> None:
    """Writes the packed vectors of a database, in place of an older file, and flushes them to disk.

    Written front to back, never through a mapping: a full disk is then an error, and not a signal.
    Raises: RefusedCopyError when the database cannot be read; OSError when the file cannot be written.
    """
    out.unlink(missing_ok=True)
    with reading(database), closing(connect(database)) as connection, out.open("xb+") as stream:
        stream.write(bytes(_PAGE))
        tables, passed_over = [np.empty((0, len(COLUMNS)), np.int64)], 0
        for batch in batches(connection):
            stream.write(batch.values.astype("<f2", copy=False).tobytes())
            tables.append(batch.columns)
            passed_over += batch.passed_over
        columns = by_name(np.concatenate(tables))
        layout = _layout(len(columns["file"]))
        for name, kind in _COLUMN_TYPES.items():
            _pad(stream, layout.starts[name])
            stream.write(columns[name].astype(kind).tobytes())
        _pad(stream, layout.size)
        _seal(stream, _header(database, len(columns["file"]), passed_over))


def map_packed(path: Path, database: Path) -> Packed:
    """Maps the packed vectors of a database read-only, after checking that they are whole and its own.

    Raises: UnfitError.
    """
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            head = stream.read(_PAGE)
            if len(head) < _PAGE:
                raise UnfitError("it is cut short")
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise UnfitError(f"it cannot be read: {error}") from error
    count, passed_over = _checked(head, size, database, content)
    layout = _layout(count)
    columns = {
        name: np.frombuffer(content, kind, count, layout.starts[name]).astype(np.int64)
        for name, kind in _COLUMN_TYPES.items()
    }
    matrix = np.frombuffer(content, "<f2", count * DIMENSIONS, layout.starts["matrix"])
    return Packed(rows_from(columns), matrix.reshape(count, DIMENSIONS), passed_over)


def fingerprint(database: Path) -> bytes:
    """Tells databases apart without reading all of one: its size, header, and pages spread over it."""
    digest = hashlib.sha256()
    with database.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        digest.update(struct.pack("<Q", size))
        for place in range(_SAMPLES + 1):
            stream.seek(max(size - _PAGE, 0) * place // _SAMPLES)
            digest.update(stream.read(_PAGE))
    return digest.digest()


def _checked(head: bytes, size: int, database: Path, content: mmap.mmap) -> tuple[int, int]:
    magic, number, dimensions, count, passed_over, whose, checksum = _HEADER.unpack_from(head)
    if magic != _MAGIC:
        raise UnfitError("it holds something else")
    if number != PACKED_FORMAT or dimensions != DIMENSIONS:
        raise UnfitError(f"it has format {number} with {dimensions} numbers a vector")
    if size != _layout(count).size:
        raise UnfitError("its size does not fit its count of vectors")
    try:
        own = fingerprint(database)
    except OSError as error:
        raise UnfitError(f"its database cannot be read: {error}") from error
    if whose != own:
        raise UnfitError("it was made from another database")
    with memoryview(content) as view:
        if zlib.crc32(view[_PAGE:], zlib.crc32(_without_checksum(head))) != checksum:
            raise UnfitError("its checksum is wrong")
    return count, passed_over


def _without_checksum(head: bytes) -> bytes:
    return head[: _HEADER.size - 4] + head[_HEADER.size :]


def _layout(count: int) -> _Layout:
    starts, place = {}, _PAGE
    widths = {name: np.dtype(kind).itemsize for name, kind in _COLUMN_TYPES.items()}
    for name, width in (("matrix", VECTOR_BYTES), *widths.items()):
        starts[name] = place
        place += -(-count * width // _PAGE) * _PAGE
    return _Layout(starts, place)


def _header(database: Path, count: int, passed_over: int) -> bytes:
    head = _HEADER.pack(_MAGIC, PACKED_FORMAT, DIMENSIONS, count, passed_over, fingerprint(database), 0)
    return head.ljust(_PAGE, b"\0")


def _pad(stream: BinaryIO, to: int) -> None:
    stream.write(bytes(to - stream.tell()))


def _seal(stream: BinaryIO, head: bytes) -> None:
    checksum = zlib.crc32(_without_checksum(head))
    for chunk in _chunks(stream):
        checksum = zlib.crc32(chunk, checksum)
    stream.seek(0)
    stream.write(head[: _HEADER.size - 4] + struct.pack("<I", checksum) + head[_HEADER.size :])
    stream.flush()
    os.fsync(stream.fileno())


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    stream.seek(_PAGE)
    while chunk := stream.read(_CHUNK):
        yield chunk

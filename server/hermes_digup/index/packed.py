"""The vectors of one database packed into one file that all servers map. Written once, at publishing.

Layout, little-endian: a header of 4,096 bytes (see `_HEADER`), the matrix, its columns, the owners of all
segments, each section at the next multiple of 4,096. The header names the database it was made from and
carries two checksums: of all but the matrix, looked at before the file is used; and of the matrix, for which
all of it is read.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import numpy as np

from hermes_digup.index.door import connect, reading
from hermes_digup.index.owners import Owners, read_owners
from hermes_digup.index.vectors import COLUMNS, VECTOR_BYTES, batches, by_name, rows_from
from hermes_digup.records import DIMENSIONS, VectorRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

PACKED_FORMAT: Final = 3

_MAGIC: Final = b"DIGUPVEC"
# magic, format, dimensions, vectors, vectors passed over, segments with a file, fingerprint of the database,
# checksums of the matrix and of all else
_HEADER: Final = struct.Struct("<8sIIQQQ32sII")
_PAGE: Final = 4096
_SAMPLES: Final = 16
_CHUNK: Final = 1 << 20
_COLUMN_TYPES: Final = dict(zip(COLUMNS, ("<i8", "<i8", "<i4", "<i4", "<i1", "<i1", "?"), strict=True))
_SEGMENT_TYPES: Final = dict.fromkeys(Owners._fields, "<i8")


class Packed(NamedTuple):
    """A packed file, mapped: nothing of it is copied. Shapes: matrix (n, 768)."""

    rows: VectorRows
    matrix: NDArray[np.float16]
    owners: Owners
    passed_over: int
    checksum: int

    def is_whole(self, stopped: Callable[[], bool]) -> bool:
        """Whether every vector is as it was written; reads all of them. True also when `stopped` says so."""
        checksum, numbers = 0, self.matrix.reshape(-1).view(np.uint8).data
        for start in range(0, len(numbers), _CHUNK):
            if stopped():
                return True
            checksum = zlib.crc32(numbers[start : start + _CHUNK], checksum)
        return checksum == self.checksum


class UnfitError(Exception):
    """A packed file that is not this database's, or not of this format: the rows are read instead."""


class _Counts(NamedTuple):
    """What a file holds, as its header says; `segments` are those that have a file."""

    vectors: int
    passed_over: int
    segments: int


class _Layout(NamedTuple):
    starts: dict[str, int]
    size: int

    @property
    def columns(self) -> int:
        """Where the columns start."""
        return self.starts[COLUMNS[0]]


def packed_name(database: Path) -> str:
    """The file name of a database's packed vectors, beside it: `index.sqlite` gives `index.vectors-3.bin`."""
    return f"{database.stem}.vectors-{PACKED_FORMAT}.bin"


def pack_vectors(database: Path, out: Path) -> None:
    """Writes the packed vectors of a database, in place of an older file, and flushes them to disk.

    Written front to back, never through a mapping: a full disk is then an error, and not a signal.
    Raises: RefusedCopyError when the database cannot be read; OSError when the file cannot be written.
    """
    out.unlink(missing_ok=True)
    with reading(database), closing(connect(database)) as connection, out.open("xb+") as stream:
        stream.write(bytes(_PAGE))
        tables, passed_over, checksum = [np.empty((0, len(COLUMNS)), np.int64)], 0, 0
        for batch in batches(connection):
            numbers = batch.values.astype("<f2", copy=False).tobytes()
            stream.write(numbers)
            checksum = zlib.crc32(numbers, checksum)
            tables.append(batch.columns)
            passed_over += batch.passed_over
        columns, owners = by_name(np.concatenate(tables)), read_owners(connection)
        counts = _Counts(len(columns["file"]), passed_over, len(owners.files))
        layout, values = _layout(counts), columns | owners._asdict()
        for name, kind in (_COLUMN_TYPES | _SEGMENT_TYPES).items():
            _pad(stream, layout.starts[name])
            stream.write(values[name].astype(kind).tobytes())
        _pad(stream, layout.size)
        _seal(stream, _header(database, counts, checksum), layout)


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
    counts, checksum = _checked(head, size, database, content)
    starts = _layout(counts).starts

    def mapped(types: dict[str, str], count: int) -> dict[str, NDArray[Any]]:
        return {name: np.frombuffer(content, kind, count, starts[name]) for name, kind in types.items()}

    matrix = np.frombuffer(content, "<f2", counts.vectors * DIMENSIONS, starts["matrix"])
    owners = Owners(**mapped(_SEGMENT_TYPES, counts.segments))
    if counts.segments and not 0 <= owners.order.min() <= owners.order.max() < counts.segments:
        raise UnfitError("it orders segments that it does not hold")
    return Packed(
        rows_from(mapped(_COLUMN_TYPES, counts.vectors)),
        matrix.reshape(counts.vectors, DIMENSIONS),
        owners,
        counts.passed_over,
        checksum,
    )


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


def _checked(head: bytes, size: int, database: Path, content: mmap.mmap) -> tuple[_Counts, int]:
    magic, number, dimensions, *numbers, whose, of_matrix, checksum = _HEADER.unpack_from(head)
    if magic != _MAGIC:
        raise UnfitError("it holds something else")
    if number != PACKED_FORMAT or dimensions != DIMENSIONS:
        raise UnfitError(f"it has format {number} with {dimensions} numbers a vector")
    counts = _Counts(*numbers)
    layout = _layout(counts)
    if size != layout.size:
        raise UnfitError("its size does not fit its count of vectors")
    try:
        own = fingerprint(database)
    except OSError as error:
        raise UnfitError(f"its database cannot be read: {error}") from error
    if whose != own:
        raise UnfitError("it was made from another database")
    with memoryview(content) as view:
        if zlib.crc32(view[layout.columns :], zlib.crc32(_without_checksum(head))) != checksum:
            raise UnfitError("its checksum is wrong")
    return counts, of_matrix


def _without_checksum(head: bytes) -> bytes:
    return head[: _HEADER.size - 4] + head[_HEADER.size :]


def _layout(counts: _Counts) -> _Layout:
    sizes = {"matrix": VECTOR_BYTES * counts.vectors}
    for types, count in ((_COLUMN_TYPES, counts.vectors), (_SEGMENT_TYPES, counts.segments)):
        sizes |= {name: np.dtype(kind).itemsize * count for name, kind in types.items()}
    starts, place = {}, _PAGE
    for name, size in sizes.items():
        starts[name] = place
        place += -(-size // _PAGE) * _PAGE
    return _Layout(starts, place)


def _header(database: Path, counts: _Counts, of_matrix: int) -> bytes:
    whose = fingerprint(database)
    head = _HEADER.pack(_MAGIC, PACKED_FORMAT, DIMENSIONS, *counts, whose, of_matrix, 0)
    return head.ljust(_PAGE, b"\0")


def _pad(stream: BinaryIO, to: int) -> None:
    stream.write(bytes(to - stream.tell()))


def _seal(stream: BinaryIO, head: bytes, layout: _Layout) -> None:
    stream.seek(layout.columns)
    checksum = zlib.crc32(stream.read(), zlib.crc32(_without_checksum(head)))
    stream.seek(0)
    stream.write(head[: _HEADER.size - 4] + struct.pack("<I", checksum) + head[_HEADER.size :])
    stream.flush()
    os.fsync(stream.fileno())

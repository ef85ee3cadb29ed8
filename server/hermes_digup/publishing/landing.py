"""What arrived, compared with what the manifest says: each file opened once and that descriptor hashed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hermes_digup.publishing.disk import opened_file, sha256_of
from hermes_digup.publishing.layout import Layout
from hermes_digup.publishing.manifest import CODE, MAIN, FileName, Manifest
from hermes_digup.publishing.records import Stamp


class IncompleteError(Exception):
    """The landing does not hold, or not yet, what its manifest says. Normal in the middle of a delivery."""


@dataclass(frozen=True, slots=True)
class LandedFile:
    """One database that matches the manifest, held open."""

    name: FileName
    path: Path
    descriptor: int


@contextmanager
def complete_landing(layout: Layout, manifest: Manifest) -> Iterator[list[LandedFile]]:
    """The files of a complete landing, open for as long as the block lasts.

    Raises: IncompleteError; RefusedCopyError when something other than a file stands in a file's place.
    """
    with ExitStack() as stack:
        files = []
        for name in sorted(manifest.files, reverse=True):
            path = layout.landing / name
            try:
                files.append(LandedFile(name, path, stack.enter_context(opened_file(path))))
            except FileNotFoundError as error:
                raise IncompleteError(f"{name} has not arrived yet") from error
        for file in files:
            expected = manifest.files[file.name].size
            if (size := os.fstat(file.descriptor).st_size) != expected:
                raise IncompleteError(f"{file.name} has {size:,} of {expected:,} bytes")
        for file in files:
            if sha256_of(file.descriptor) != (
                manifest.files[file.name].size,
                manifest.files[file.name].sha256,
            ):
                raise IncompleteError(f"{file.name} does not match its manifest (sha256)")
        yield files


def stamps(layout: Layout) -> tuple[Stamp, ...]:
    """What the file system says of the landing's databases: equal stamps, equal bytes, nothing read."""
    found = []
    for name in (MAIN, CODE):
        try:
            at = (layout.landing / name).lstat()
        except OSError:
            continue
        found.append((name, at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns))
    return tuple(found)


def is_the_same_file(one: Path, other: Path) -> bool:
    """Whether two names lead to one file, links not followed."""
    try:
        a, b = one.lstat(), other.lstat()
    except OSError:
        return False
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)

"""DigUp's files, opened: checked databases, packed vectors, one immutable snapshot, and the shelf that swaps it."""

from __future__ import annotations

from hermes_digup.index.checks import check_database
from hermes_digup.index.database import Counts, Database
from hermes_digup.index.packed import PACKED_FORMAT, pack_vectors, packed_name
from hermes_digup.index.shelf import Shelf
from hermes_digup.index.snapshot import Snapshot, open_snapshot
from hermes_digup.records import FolderFilter, folder_filter

__all__ = [
    "PACKED_FORMAT",
    "Counts",
    "Database",
    "FolderFilter",
    "Shelf",
    "Snapshot",
    "check_database",
    "folder_filter",
    "open_snapshot",
    "pack_vectors",
    "packed_name",
]

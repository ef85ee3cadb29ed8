"""DigUp's files, opened: checked databases, packed vectors, snapshots, the shelf that swaps them."""

from __future__ import annotations

from hermes_digup.index.checks import check_database
from hermes_digup.index.database import Database
from hermes_digup.index.door import stopping_when
from hermes_digup.index.kernel import scored_by
from hermes_digup.index.listing import Counts, Unfinished
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
    "Unfinished",
    "check_database",
    "folder_filter",
    "open_snapshot",
    "pack_vectors",
    "packed_name",
    "scored_by",
    "stopping_when",
]

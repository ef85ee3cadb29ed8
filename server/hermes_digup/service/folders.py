"""Which folder a question is limited to, when that is clear."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_digup.index import folder_filter
from hermes_digup.service.library import Corner
from hermes_digup.service.safe_text import safe_name, shortened


def folder_fault(text: str) -> str:
    """Why this folder cannot be told, in a sentence; empty when it can.

    A path from `/` means what it says. Any other starts in the laptop's home folder, as nobody is in a folder
    there: one that climbs out of it would quietly search everything.
    """
    wanted = text.strip()
    depth = 0
    for part in () if wanted.startswith("/") else wanted.removeprefix("~").split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            shown = shortened(safe_name(wanted), 200)
            return (
                f"folder: {shown!r} leads out of the home folder. Give a full path, or one from the home "
                "folder like ~/Documents; no folder means everywhere."
            )
    return ""


def files_in(corners: Sequence[Corner], folder: str) -> int:
    """How many indexed files lie in a folder, at any depth."""
    return sum(
        each.database.browse(folder=folder_filter(folder, each.snapshot.home), limit=0)[1] for each in corners
    )


def empty_folder(corners: Sequence[Corner], folder: str) -> str:
    """That nothing lies in this folder, so that nobody looks for other words; empty when something does."""
    if not folder.strip() or files_in(corners, folder):
        return ""
    shown = shortened(safe_name(folder.strip()), 200)
    return f"No indexed file lies in {shown}. Check its spelling (~ is the laptop's home), or leave it out."

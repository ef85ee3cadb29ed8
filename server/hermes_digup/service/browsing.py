"""browse_files: what is indexed, newest first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hermes_digup.index import folder_filter
from hermes_digup.service.answers import BrowseAnswer, Notice
from hermes_digup.service.bounds import fitting
from hermes_digup.service.folders import empty_folder, folder_fault
from hermes_digup.service.library import Corner, Opened
from hermes_digup.service.located import Located, found_file
from hermes_digup.service.notices import no_index, notices_of


@dataclass(frozen=True, slots=True)
class BrowseRequest:
    """Which files to list. `kinds` None: all of them."""

    folder: str = ""
    kinds: Collection[str] | None = None
    name_contains: str = ""
    limit: int = 20
    offset: int = 0


def browse_files(opened: Opened, request: BrowseRequest) -> BrowseAnswer:
    """Files of all main indexes together, newest first; the order is the same on every page."""
    if fault := folder_fault(request.folder):
        return BrowseAnswer(status="invalid_argument", message=fault)
    if not opened.snapshots:
        return no_index(BrowseAnswer, opened)
    found: list[Located] = []
    total = 0
    for snapshot in opened.snapshots:
        corner = Corner(snapshot, snapshot.main)
        files, count = corner.database.browse(
            kinds=request.kinds,
            folder=folder_filter(request.folder, snapshot.home),
            name_contains=request.name_contains.strip("*") or None,  # *.pdf means the same
            limit=request.offset + request.limit if len(opened.snapshots) > 1 else request.limit,
            offset=0 if len(opened.snapshots) > 1 else request.offset,
        )
        total += count
        found += [Located(corner, file) for file in files]
    if len(opened.snapshots) > 1:
        found.sort(key=lambda each: (-each.file.modified_unix, each.corner.machine, each.file.path))
        found = found[request.offset : request.offset + request.limit]
    listed = [found_file(each.corner.machine, each.file) for each in found]
    kept = fitting(listed)
    end = request.offset + kept
    notices = notices_of(opened)
    if kept < len(listed):
        notices.append(Notice(code="cut", message=f"Only {kept} of {len(listed)} files fit; more follow."))
    message = "" if found else _nothing_to_list(opened, total, request)
    return BrowseAnswer(
        status="ok" if found else ("end_of_file" if total else "nothing_found"),
        message=message,
        warnings=notices,
        files=listed[:kept],
        total=total,
        next_offset=end if found and end < total else None,
    )


def _nothing_to_list(opened: Opened, total: int, request: BrowseRequest) -> str:
    if total:
        return f"offset {request.offset} is past the end: {total} files match. Begin again at 0."
    return empty_folder([Corner(each, each.main) for each in opened.snapshots], request.folder) or (
        "No indexed file matches. Try a wider folder, other kinds, or less of the name; index_status says "
        "what is indexed."
    )

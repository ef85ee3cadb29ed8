"""Which of the service's doors each tool goes through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hermes_digup.mcp_server.definitions import (
    BrowseFiles,
    IndexStatus,
    ReadFile,
    ReadPassage,
    SearchCode,
    SearchFiles,
)
from hermes_digup.service import Answer, BrowseRequest, Call, FileRequest, SearchRequest, Service


def search_files(service: Service, given: SearchFiles, call: Call) -> Answer:
    request = SearchRequest(
        given.query,
        kinds=frozenset(given.kinds) or None,
        folder=given.folder,
        limit=given.limit,
    )
    return service.search(request, call)


def search_code(service: Service, given: SearchCode, call: Call) -> Answer:
    return service.search(SearchRequest(given.query, code=True, folder=given.folder, limit=given.limit), call)


def read_passage(service: Service, given: ReadPassage, call: Call) -> Answer:
    return service.read_passage(given.segment_id, context=given.context, call=call)


def read_file(service: Service, given: ReadFile, call: Call) -> Answer:
    request = FileRequest(
        given.path,
        offset=given.offset,
        max_chars=given.max_chars,
        machine=given.machine,
        code=True if given.code else None,
    )
    return service.read_file(request, call)


def browse_files(service: Service, given: BrowseFiles, call: Call) -> Answer:
    request = BrowseRequest(
        folder=given.folder,
        kinds=frozenset(given.kinds) or None,
        name_contains=given.name_contains,
        limit=given.limit,
        offset=given.offset,
    )
    return service.browse_files(request, call)


def index_status(service: Service, given: IndexStatus, call: Call) -> Answer:
    return service.index_status(call)


RUN: dict[str, Callable[[Service, Any, Call], Answer]] = {
    "search_files": search_files,
    "search_code": search_code,
    "read_passage": read_passage,
    "read_file": read_file,
    "browse_files": browse_files,
    "index_status": index_status,
}

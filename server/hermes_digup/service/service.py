"""What the six tools do, whatever the protocol: the product's table of contents.

A question's whole journey passes here: sources opened, vector asked for, hits ranked, answers made harmless.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TypeVar

from hermes_digup.embedding import EmbeddingClient
from hermes_digup.errors import BusyError
from hermes_digup.index import stopping_when
from hermes_digup.service.answers import (
    Answer,
    BrowseAnswer,
    FileAnswer,
    PassageAnswer,
    SearchAnswer,
    StatusAnswer,
)
from hermes_digup.service.browsing import BrowseRequest, browse_files
from hermes_digup.service.call import Call
from hermes_digup.service.files import FileRequest, LastTexts, read_file
from hermes_digup.service.library import Library, Opened, Source
from hermes_digup.service.passages import NumberRequest, read_number, read_passage
from hermes_digup.service.searching import SearchRequest, run_search
from hermes_digup.service.status import index_status
from hermes_digup.service.vectors import Vectors
from hermes_digup.settings import Settings, Watched

AnAnswer = TypeVar("AnAnswer", bound=Answer)
TOO_LATE = "This took too long and was ended. Try again with a narrower folder, or fewer and rarer words."


class Service:
    """The tools over all sources. Opens nothing until the first call.

    Threads: any number may call at once.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        environ: Mapping[str, str],
        sources: Callable[[], Sequence[Source]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sources` lists the sources there are now; it is asked at every call."""
        self._watched = Watched(settings, environ=environ, clock=clock)
        self._library = Library(sources, clock=clock)
        self._texts = LastTexts()
        self._vectors = Vectors(self._watched.current, embedding_client)

    def search(self, request: SearchRequest, call: Call | None = None) -> SearchAnswer:
        """search_files and search_code."""
        return self._in_time(
            SearchAnswer,
            call,
            lambda opened, limits: run_search(opened, self._library, self._vectors, request, limits),
        )

    def read_passage(self, segment_id: str, *, context: int = 0, call: Call | None = None) -> PassageAnswer:
        return self._in_time(PassageAnswer, call, lambda opened, _: read_passage(opened, segment_id, context))

    def read_number(self, request: NumberRequest) -> PassageAnswer:
        """A passage by DigUp's own number, for the command line."""
        return self._in_time(PassageAnswer, None, lambda opened, _: read_number(opened, request))

    def read_file(self, request: FileRequest, call: Call | None = None) -> FileAnswer:
        return self._in_time(FileAnswer, call, lambda opened, _: read_file(opened, self._texts, request))

    def browse_files(self, request: BrowseRequest, call: Call | None = None) -> BrowseAnswer:
        return self._in_time(BrowseAnswer, call, lambda opened, _: browse_files(opened, request))

    def index_status(self, call: Call | None = None) -> StatusAnswer:
        return self._in_time(
            StatusAnswer,
            call,
            lambda opened, limits: index_status(
                opened, self._library, self._vectors.asked_now(limits.deadline)
            ),
        )

    def close(self) -> None:
        self._vectors.close()
        self._library.close()

    def opened(self) -> AbstractContextManager[Opened]:
        """All usable sources, held open until the block ends."""
        settings = self._watched.current()
        return self._library.opened(timedelta(hours=settings.stale_hours), settings.sources_dir)

    def _in_time(
        self, kind: type[AnAnswer], call: Call | None, work: Callable[[Opened, Call], AnAnswer]
    ) -> AnAnswer:
        """The work's answer, or one that says that its time was over."""
        limits = call or Call()
        try:
            with self.opened() as opened, stopping_when(limits.is_over):
                return work(opened, limits)
        except BusyError:
            return kind(status="timed_out", message=TOO_LATE)


def embedding_client(settings: Settings) -> EmbeddingClient | None:
    """The client these settings ask for; None when no server is set."""
    if not settings.embed_urls:
        return None
    key = settings.embed_api_key
    return EmbeddingClient(
        settings.embed_urls,
        api=settings.embed_api,
        model=settings.embed_model,
        key=(lambda: key.get_secret_value()) if key else None,
        timeout_s=settings.embed_timeout_s,
    )

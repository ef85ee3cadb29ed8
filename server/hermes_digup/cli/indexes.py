"""Which sources a command answers from: those delivered here, or DigUp's own folder on the laptop itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hermes_digup.publishing import LiveFolder, source_status, sources
from hermes_digup.service import Service, Source
from hermes_digup.settings import Settings

COPYING = "DigUp's index is being copied for the first time; ask again in a minute."


@contextmanager
def opened_service(
    settings: Settings, environ: Mapping[str, str], *, keep_looking: bool
) -> Iterator[Service]:
    """The service over the settings' sources, closed when the block ends.

    A live folder is copied when it changed: once, before a single command; again and again while serving
    (`keep_looking`), in the background, so that a server is ready at once.
    Raises: DigupError when a single command finds no index that can be copied.
    """
    live = LiveFolder(settings.index_dir, settings.cache_dir) if settings.index_dir else None
    if live is None:
        service = Service(settings, environ=environ, sources=lambda: delivered(settings.sources_dir))
    else:
        if keep_looking:
            live.start()
        else:
            live.refresh()
        service = Service(settings, environ=environ, sources=lambda: [_source_of(live)])
    try:
        yield service
    finally:
        service.close()
        if live is not None:
            live.close()


def delivered(sources_dir: Path) -> list[Source]:
    """The laptops' sources that are in use or wanted, each with why its newest delivery is not in use."""
    found = []
    for folder in sources(sources_dir):
        status = source_status(folder)
        if status.state != "retired":
            why = {status.state: status.reason}
            found.append(
                Source(folder, folder.name, problem=why.get("refused"), arriving=why.get("incomplete"))
            )
    return found


def _source_of(live: LiveFolder) -> Source:
    return Source(live.source, live.machine, problem=live.problem, hint=COPYING)

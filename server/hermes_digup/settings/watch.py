"""Settings that reach running servers: config.env is read again when it changes.

So a rotated key, or a moved model server, needs no restart.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes_digup.errors import SettingsError
from hermes_digup.settings.model import Settings, load

log = logging.getLogger(__name__)
LOOK_EVERY_S = 1.0


class Watched:
    """The newest good settings.

    Threads: any number may ask at once.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        environ: Mapping[str, str],
        clock: Callable[[], float],
        path: Path | None = None,
    ) -> None:
        self._settings, self._environ, self._clock, self._path = settings, dict(environ), clock, path
        self._lock = threading.Lock()
        self._seen = _mark(settings.config_path)
        self._looked_at = clock()

    def current(self, *, now: bool = False) -> Settings:
        """The settings, looked at afresh at most once a second, or `now`.

        A file that has become faulty is reported once; the settings from before it stay in use.
        """
        with self._lock:
            if not now and self._clock() - self._looked_at < LOOK_EVERY_S:
                return self._settings
            self._looked_at = self._clock()
            mark = _mark(self._settings.config_path)
            if mark != self._seen:
                self._seen = mark
                self._read()
            return self._settings

    def _read(self) -> None:
        try:
            self._settings = load(self._environ, self._path)
        except SettingsError as error:
            log.warning("settings unusable, the former ones stay: %s", error)


def _mark(path: Path) -> tuple[int, int, int] | None:
    """What tells one state of the file from the next; None when it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino

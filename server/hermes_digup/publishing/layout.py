"""Where the parts of a source lie: landing (what arrived), generations (proved copies), current (in use)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

WORK_PREFIX = ".new-"
OLD_PREFIX = ".old-"


@dataclass(frozen=True, slots=True)
class Layout:
    """One source's folder. Its name comes from the folder, never from a file that arrived."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    @property
    def manifest(self) -> Path:
        return self.landing / "manifest.json"

    @property
    def confirmed(self) -> Path:
        return self.landing / "confirmed.json"

    @property
    def generations(self) -> Path:
        return self.folder / "generations"

    @property
    def current(self) -> Path:
        return self.folder / "current"

    @property
    def state(self) -> Path:
        return self.folder / "state.json"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    def current_id(self) -> str | None:
        """The generation in use, or None; a link that leads elsewhere or nowhere counts as none."""
        try:
            target = self.current.readlink()
        except OSError:
            return None
        is_ours = target.parts[:-1] == ("generations",) and (self.generations / target.name).is_dir()
        return target.name if is_ours else None


def sources(sources_dir: Path) -> list[Path]:
    """The folders of all sources, by name; a folder that isn't there yet has none."""
    if not sources_dir.is_dir():
        return []
    return sorted(path for path in sources_dir.iterdir() if _NAME.fullmatch(path.name) and path.is_dir())

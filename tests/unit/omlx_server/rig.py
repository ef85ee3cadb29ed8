"""A Mac of the tests: a home folder, an oMLX double that runs in it, and our modules called for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.doubles.omlx import OmlxDouble
from tests.doubles.omlx_state import Personality

HOST = "mac-mini"
MAIN_KEY = "main-key-of-the-tests"


class Mac:
    """A home folder with an oMLX in it that runs, and our modules called for that home."""

    def __init__(self, home: Path, call: Callable[..., dict[str, Any]], personality: Personality) -> None:
        self.home, self._call = home, call
        self.omlx = OmlxDouble(home / ".omlx", personality=personality, api_key=MAIN_KEY)

    @property
    def note(self) -> Path:
        return self.home / ".config" / "hermes-digup" / "model-server.json"

    def settings(self, **arguments: Any) -> dict[str, Any]:
        return self._call("omlx_settings", host=HOST, home=str(self.home), timeout_seconds=20, **arguments)

    def model(self, **arguments: Any) -> dict[str, Any]:
        return self._call("omlx_model", host=HOST, home=str(self.home), note=str(self.note), **arguments)

    def sub_key(self, **arguments: Any) -> dict[str, Any]:
        return self._call("omlx_sub_key", host=HOST, home=str(self.home), **arguments)

    def written(self) -> list[tuple[str, str]]:
        """What was asked of the server so far, without reading and logging in."""
        return [one for one in self.omlx.requests if one[0] != "GET" and one[1] != "/admin/api/login"]

    def files(self) -> dict[str, str]:
        """oMLX's own settings files, as they are."""
        return {path.name: path.read_text() for path in sorted((self.home / ".omlx").glob("*.json"))}

"""The role's modules, importable as Ansible imports them, and called as Ansible calls them."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest
from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args

from tests.doubles.omlx import OmlxDouble
from tests.doubles.omlx_state import Personality

ROLE = Path(__file__).parents[3] / "roles" / "omlx_server"
MODULE_UTILS = str(ROLE / "module_utils")
MAIN_KEY = "main-key-of-the-tests"

if MODULE_UTILS not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(MODULE_UTILS)
if str(ROLE / "library") not in sys.path:
    sys.path.append(str(ROLE / "library"))


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Runs one of our modules with arguments (`_ansible_check_mode=True` for check mode); returns its result."""

    def run(name: str, **arguments: Any) -> dict[str, Any]:
        module = importlib.import_module(name)
        capsys.readouterr()
        warnings._global_warnings.clear()  # one process here, a new one for each call in reality
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        result = json.loads(capsys.readouterr().out)
        result["warnings"] = [warning["event"]["msg"] for warning in result.get("warnings", ())]
        return result

    return run


class Mac:
    """A home folder with an oMLX in it that runs, and our modules called for that home."""

    def __init__(self, home: Path, call: Callable[..., dict[str, Any]], personality: Personality) -> None:
        self.home, self._call = home, call
        self.omlx = OmlxDouble(home / ".omlx", personality=personality, api_key=MAIN_KEY)

    @property
    def note(self) -> Path:
        return self.home / ".config" / "hermes-digup" / "model-server.json"

    def settings(self, **arguments: Any) -> dict[str, Any]:
        return self._call("omlx_settings", home=str(self.home), timeout_seconds=20, **arguments)

    def model(self, **arguments: Any) -> dict[str, Any]:
        return self._call("omlx_model", home=str(self.home), note=str(self.note), **arguments)

    def sub_key(self, **arguments: Any) -> dict[str, Any]:
        return self._call("omlx_sub_key", home=str(self.home), **arguments)

    def written(self) -> list[tuple[str, str]]:
        """What was asked of the server so far, without reading and logging in."""
        return [one for one in self.omlx.requests if one[0] != "GET" and one[1] != "/admin/api/login"]

    def files(self) -> dict[str, str]:
        """oMLX's own settings files, as they are."""
        return {path.name: path.read_text() for path in sorted((self.home / ".omlx").glob("*.json"))}


@pytest.fixture
def mac(tmp_path: Path, call: Callable[..., dict[str, Any]]) -> Iterator[Callable[..., Mac]]:
    """Makes Macs: `mac()` or `mac(old=True, ...)` for another personality of oMLX."""
    made: list[Mac] = []

    def make(**personality: Any) -> Mac:
        quick = {"download_s": 0.4, "downtime_s": 0.3, **personality}
        made.append(Mac(tmp_path / f"mac{len(made)}", call, Personality(**quick)))
        made[-1].omlx.start()
        return made[-1]

    yield make
    for one in made:
        one.omlx.stop()

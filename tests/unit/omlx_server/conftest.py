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
from tests.doubles.omlx_state import Personality
from tests.unit.omlx_server.rig import Mac

ROLE = Path(__file__).parents[3] / "roles" / "omlx_server"
MODULE_UTILS = str(ROLE / "module_utils")

if MODULE_UTILS not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(MODULE_UTILS)
if str(ROLE / "library") not in sys.path:
    sys.path.append(str(ROLE / "library"))


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Runs one of our modules with arguments (`_ansible_check_mode=True` …); returns its result."""

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

"""The role's modules, importable as Ansible imports them, and called as Ansible calls them."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest
from ansible.module_utils.testing import patch_module_args

ROLE = Path(__file__).parents[3] / "roles" / "hermes_digup"
MODULE_UTILS = str(ROLE / "module_utils")

if MODULE_UTILS not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(MODULE_UTILS)
if str(ROLE / "library") not in sys.path:
    sys.path.append(str(ROLE / "library"))

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs one of our modules with arguments (`check=True` for check mode); returns its result."""

    def run(name: str, /, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
        module = importlib.import_module(name)
        capsys.readouterr()
        with patch_module_args({**arguments, "_ansible_check_mode": check}), pytest.raises(SystemExit):
            module.main()
        return json.loads(capsys.readouterr().out)

    return run

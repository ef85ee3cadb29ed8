"""Which laptops an agent's host expects copies from, as the playbooks tell the roles."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WIRING = Path(__file__).parents[3] / "playbooks" / "vars" / "wiring.yml"
ANSIBLE = Path(sys.executable).with_name("ansible")


@pytest.mark.skipif(not ANSIBLE.exists(), reason="ansible-core is not installed here")
def test_each_agent_expects_the_laptops_that_deliver_to_it(tmp_path: Path) -> None:
    laptops: dict[str, dict[str, Any]] = {
        "macbook": {},
        "studio": {"digup_sync_agent": "second-pi"},
        "airbook": {"digup_sync_source": "air"},
        "gone": {"digup_sync_state": "absent"},
    }
    expected = {"pi": ["macbook", "air"], "second-pi": ["studio"], "third-pi": []}
    groups = {"agents": {"hosts": {name: {} for name in expected}}, "laptops": {"hosts": laptops}}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"children": groups}}))
    command = [str(ANSIBLE), "agents", "-i", str(tmp_path / "hosts.json"), "-e", f"@{WIRING}"]
    done = subprocess.run(
        [*command, "-m", "debug", "-a", "msg={{ hermes_digup_sources | join(',') }}"],
        env={"HOME": str(tmp_path), "ANSIBLE_NOCOLOR": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r'^(\S+) \| SUCCESS => \{\s*"msg": "(.*)"', done.stdout, re.M)
    assert {host: names.split(",") if names else [] for host, names in found} == expected, (
        done.stdout + done.stderr
    )

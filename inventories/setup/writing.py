"""The inventory on disk: `inventories/home`, made from the example with the person's own machines in it."""

from __future__ import annotations

import shutil
from pathlib import Path

from inventories.setup.machines import Machine

_HEAD = """\
---
# Your machines, as `make setup` wrote them down. Edit it as you like: setup never writes over it.
# The names on the left are yours to choose: answers say "on macbook". Git ignores this folder.
all:
  children:
"""
_GROUPS = (
    ("laptops", "Macs with the DigUp app: each becomes a source of its own."),
    (
        "model_servers",
        "The always-on Mac where oMLX serves models; see group_vars/agents.yml if it stays empty.",
    ),
    ("agents", "Where Hermes Agent lives."),
)


def write_inventory(inventories: Path, machines: dict[str, list[Machine]]) -> Path:
    """Makes `inventories/home` in one step, so that a half-made one never stands there."""
    work = inventories / ".home.new"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(inventories / "example", work)
    (work / "hosts.yml").write_text(hosts_yml(machines), encoding="utf-8")
    work.rename(inventories / "home")
    return inventories / "home" / "hosts.yml"


def hosts_yml(machines: dict[str, list[Machine]]) -> str:
    """The text of hosts.yml. Every value was checked to be letters, digits, dots, dashes or an address."""
    lines = [_HEAD]
    for group, meaning in _GROUPS:
        lines.append(f"    # {meaning}\n    {group}:\n      hosts:{'' if machines[group] else ' {}'}\n")
        for machine in machines[group]:
            lines.append(f'        {machine.name}:\n          ansible_host: "{machine.host}"\n')
            lines.append(f'          ansible_user: "{machine.user}"\n')
            if machine.is_this:
                lines.append("          ansible_connection: local # setup ran on this machine\n")
    return "".join(lines)

"""What the tests of doctor.yml share: faults, their names, and that what the doctor says mends them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

COMMAND = re.compile(r"ansible-playbook \S+\.yml(?: --limit [^\s,]+)?")


class Row(NamedTuple):
    """A row of the doctor's report."""

    level: str
    detail: str
    fix: str


class Site(Protocol):
    """Hosts that were set up by the real playbooks."""

    def doctor(self) -> dict[str, Row]:
        """All rows of doctor.yml, by "host: check"."""

    def type(self, command: str) -> None:
        """Runs a command as a person would type it. Raises: AssertionError when it fails."""


def nothing(_site: Any) -> None:
    """The playbooks that the doctor names are enough."""


@dataclass(frozen=True)
class Fault:
    """`rows` are all that the doctor may complain of, with their levels; `words` stand in the first one.

    `mend` is what a person does by hand, before the playbooks that the rows name are run.
    """

    name: str
    strike: Callable[[Any], object]
    rows: Mapping[str, str]
    words: str
    mend: Callable[[Any], object] = nothing


def names(together: Sequence[Fault]) -> str:
    return ", ".join(fault.name for fault in together) or "all well"


def suffer(site: Site, together: Sequence[Fault]) -> None:
    """Strikes faults of different parts at once and follows the doctor to the letter.

    What was mended is seen by the next call: then the doctor may complain of the next faults alone.
    """
    for fault in together:
        fault.strike(site)
    rows = site.doctor()
    complaints = {name: row for name, row in rows.items() if row.level not in ("OK", "SKIP")}
    expected = {name: level for fault in together for name, level in fault.rows.items()}
    assert {name: row.level for name, row in complaints.items()} == expected, complaints
    for fault in together:
        row = complaints[next(iter(fault.rows))]
        assert fault.words in f"{row.detail}; {row.fix}", row
    for fault in together:
        fault.mend(site)
    said = "\n".join(f"{row.detail}\n{row.fix}" for row in complaints.values())
    for command in dict.fromkeys(COMMAND.findall(said)):
        site.type(command)

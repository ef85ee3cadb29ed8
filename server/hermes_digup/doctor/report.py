"""What doctor found, as rows: check, state, detail, fix."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from hermes_digup.service import safe_line, shortened

State = Literal["ok", "warn", "FAIL", "skip"]
SYNC_FIX = "Wake the laptop, then: ansible-playbook playbooks/sync_now.yml"


def brief(text: str) -> str:
    """Words from elsewhere, on one line of bounded length."""
    return shortened(safe_line(text), 300)


@dataclass(frozen=True, slots=True)
class Row:
    """One check. `fix` is the next step, and empty when all is well."""

    check: str
    state: State
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All checks, in the order in which things depend on each other."""

    rows: tuple[Row, ...]

    @property
    def verdict(self) -> str:
        failed = sum(row.state == "FAIL" for row in self.rows)
        warned = sum(row.state == "warn" for row in self.rows)
        if failed:
            return f"{failed} of {len(self.rows)} checks failed" + (f", {warned} warned" if warned else "")
        return f"{warned} of {len(self.rows)} checks warned, none failed" if warned else "all good"

    @property
    def exit_code(self) -> int:
        """0 unless a check failed: warnings are for people."""
        return 1 if any(row.state == "FAIL" for row in self.rows) else 0

    def as_dict(self) -> dict[str, object]:
        """For scripts: the rows, the verdict, and whether nothing failed."""
        return {
            "ok": self.exit_code == 0,
            "verdict": self.verdict,
            "checks": [asdict(row) for row in self.rows],
        }

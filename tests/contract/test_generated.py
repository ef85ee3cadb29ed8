"""Parts of the documents that are made from the code are what the code says now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_generated_documents_are_up_to_date() -> None:
    check = [sys.executable, ROOT / "docs" / "generate.py", "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr

"""The ranking equals what DigUp's own code computed, whichever way an index comes to us."""

from __future__ import annotations

import pytest
from tests.golden.run import HERE, golden_files, judge

FILES = golden_files(HERE)


@pytest.mark.parametrize("delivered", [False, True], ids=["opened", "delivered"])
@pytest.mark.parametrize("path", FILES, ids=[path.name.partition(".")[0] for path in FILES])
def test_every_case_agrees_with_digup(path, delivered):
    verdict = judge(path, delivered=delivered)

    assert verdict.mismatches == 0, str(verdict)
    assert verdict.cases > 0


def test_there_are_golden_files():
    assert FILES

"""The program is replaced under a server that answers questions: forth, not to a broken one, and back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.integration.asking import Asker
from tests.integration.hermes_digup_role.conftest import Pi, ended

pytestmark = pytest.mark.timeout(600)
QUESTION, FOUND = "INV-2026-0042", "Invoice Brightwater Design.pdf"


@pytest.fixture
def at_former(pi: Pi, former: Path) -> Pi:
    """The Pi, on which the former version is in use."""
    if pi.version != "hermes-digup 0.0.9":
        ran = pi.run(former)
        assert ran.code == 0, ran.text
    return pi


def test_queries_go_on_through_an_upgrade_a_broken_version_and_the_way_back(
    at_former: Pi, built: Path, broken: Path
) -> None:
    pi = at_former
    with Asker(pi.home, QUESTION) as asker:
        upgraded = pi.run(built)
        assert upgraded.code == 0, upgraded.text
        assert re.search(
            r"Built the program on raspberrypi in \d+ s. It takes \d+ MB; \d+ MB are free", upgraded.text
        )
        assert asker.more()
        asker.restart()

        refused = pi.run(broken)
        assert refused.code != 0
        told = " ".join(refused.text.split())
        assert "raspberrypi: the new server failed its self test" in told, refused.text
        assert "a tool is missing" in told and "The version that was there before goes on working." in told
        asker.restart()

        back = pi.run(built, hermes_digup_rollback=True)
        assert back.code == 0, back.text
        asker.restart()
    assert pi.version == "hermes-digup 0.0.9"
    new = re.sub(r"hermes_digup-(.*)-py3.*", r"\1", built.name)
    assert asker.versions == ["0.0.9", new, new, "0.0.9"]
    assert asker.faults == []
    assert [answer for answer in asker.answers if FOUND not in answer] == []


def test_two_runs_at_once_leave_one_whole_version_in_use(pi: Pi, former: Path, built: Path) -> None:
    both = [ended(process) for process in [pi.start(built), pi.start(former)]]
    assert [ran.code for ran in both] == [0, 0], both
    assert pi.version in ("hermes-digup 0.0.9", f"hermes-digup {built.name.split('-')[1]}")
    assert pi.environments == 2
    assert list((pi.data / "venvs").glob("*.incoming")) == []


def test_a_way_back_where_there_is_none_is_a_sentence(pi: Pi, former: Path) -> None:
    (pi.data / "venv-former").unlink(missing_ok=True)
    ran = pi.run(former, hermes_digup_rollback=True)
    assert ran.code != 0
    assert "raspberrypi: there is no former version here to go back to." in " ".join(ran.text.split())

"""The program is replaced under a server that answers questions: forth, not to a broken one, and back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.integration.asking import Asker
from tests.integration.hermes_digup_role.conftest import Pi

pytestmark = pytest.mark.timeout(900)
QUESTION, FOUND = "INV-2026-0042", "Invoice Brightwater Design.pdf"


def test_queries_go_on_through_an_upgrade_a_broken_version_and_the_way_back(
    pi: Pi, former: Path, built: Path, broken: Path
) -> None:
    # Two runs at once: one builds, the other waits for it and finds all done.
    with pi.start(former) as one, pi.start(former) as other:
        said = sorted(re.sub(r"\s+", " ", run.communicate()[0]) for run in (one, other))
    assert (one.returncode, other.returncode) == (0, 0), said
    assert re.match(r"localhost . CHANGED .*in \d+ s. It takes \d+ MB; \d+ MB are free", said[0])
    assert said[1].startswith("localhost | SUCCESS")

    with Asker(pi.home, QUESTION) as asker:
        code, told = pi.put(built)
        assert code == 0, told
        asker.more()
        asker.restart()

        code, told = pi.put(broken)
        assert code != 0
        told = " ".join(told.split())
        assert "raspberrypi: the new server failed its self test" in told
        assert "The version that was there before goes on working." in told
        asker.restart()

        code, told = pi.put(former, state="former")
        assert code == 0, told
        asker.more()
        asker.restart()
    new = built.name.split("-")[1]
    assert asker.versions == ["0.0.9", new, new, "0.0.9"]
    assert asker.faults == []
    assert [answer for answer in asker.answers if FOUND not in answer] == []
    assert sorted(path.name for path in pi.venvs.glob("[!.]*") if path.suffix == "") == ["built", "former"]

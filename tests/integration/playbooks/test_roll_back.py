"""An update of the whole agent host and the way back, with the one command that the README names."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.playbooks.conftest import ROOT, Site

pytestmark = pytest.mark.timeout(900)
BACK = {"hermes_digup_rollback": True}


def test_the_way_back_is_one_command_and_there_once(site: Site, tmp_path: Path) -> None:
    used = site.agent / ".local" / "share" / "hermes-digup" / "venv"
    before, answered = used.resolve(), site.search("landlord pets")["hits"]
    newer = tmp_path / "requirements.txt"
    newer.write_text(
        (ROOT / "templates" / "pi" / "requirements.txt").read_text() + "\n# of a newer version\n"
    )

    ran = site.run("site.yml", hermes_digup_requirements=str(newer))
    assert ran.code == 0, ran.text
    after = used.resolve()
    assert after != before and site.search("landlord pets")["hits"] == answered

    ran = site.run("site.yml", "--check", **BACK)
    assert ran.code == 0 and used.resolve() == after, ran.text
    assert "Would go back to the former version." in " ".join(ran.text.split())

    ran = site.run("site.yml", **BACK)
    assert ran.code == 0, ran.text
    assert "raspberrypi is back at the former version." in " ".join(ran.text.split())
    assert used.resolve() == before and site.search("landlord pets")["hits"] == answered

    ran = site.run("site.yml", **BACK)
    assert ran.code != 0 and used.resolve() == before, ran.text
    assert "there is no former version here to go back to" in " ".join(ran.text.split())

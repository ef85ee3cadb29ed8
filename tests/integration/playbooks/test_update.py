"""An older version's site, updated by this one and brought back again: nothing of it is lost on the way."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.doubles.model import HashedWords
from tests.doubles.omlx import OmlxDouble
from tests.doubles.questions import QUESTIONS
from tests.integration.playbooks.conftest import PLAYBOOK, ROOT, Site

# Any commit since the first one whose demo works.
OLD = os.environ.get("UPDATE_FROM", "60e635b")
pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not PLAYBOOK.exists(), reason="ansible-core is not installed here"),
]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The project as it was then."""
    tree = tmp_path / "old tree"
    subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)
    subprocess.run(["git", "-C", tree, "checkout", "--quiet", OLD], check=True)
    return tree


@pytest.fixture
def lived_in(tmp_path: Path, old: Path) -> Iterator[Site]:
    """Set up by the old version, with a setting and a key of its user's."""
    base = tmp_path / "lived in" / ".demo" / "mac-mini" / ".omlx"
    base.parent.mkdir(parents=True)
    with OmlxDouble(base, model=HashedWords()) as omlx:
        omlx.add_sub_key("somebody-elses", name="other")
        site = Site(tmp_path / "lived in")
        site.tree = old
        ran = site.run("site.yml")
        assert ran.code == 0, ran.text
        site.sync()
        with (site.agent / ".config" / "hermes-digup" / "config.env").open("a") as config:
            config.write("# mine\nDIGUP_STALE_HOURS=99\n")
        yield site


def belongings(site: Site) -> dict[str, Any]:
    """What no version may lose or make anew."""
    source = site.agent / ".local" / "share" / "hermes-digup" / "sources" / "macbook"
    laptop = site.laptop / ".config" / "hermes-digup"
    config = (site.agent / ".config" / "hermes-digup" / "config.env").read_text().splitlines()
    return {
        "copy": (source / "current" / "index.sqlite").stat().st_ino,
        "keys": [(laptop / name).read_text() for name in ("sync_key", "sync_key.pub")],
        "sub keys": json.loads((site.model_server / ".omlx" / "settings.json").read_text())["auth"][
            "sub_keys"
        ],
        "settings": [line for line in config if line.startswith(("# mine", "DIGUP_STALE_", "DIGUP_EMBED_"))],
        "answers": [
            [(hit["path"], hit["matched"]) for hit in site.search(question.text)["hits"]]
            for question in QUESTIONS
        ],
    }


def test_an_update_and_the_way_back_lose_nothing(lived_in: Site, old: Path, tmp_path: Path) -> None:
    site, report = lived_in, tmp_path / "report.json"
    before = belongings(site)
    assert all(before.values()), before
    for site.tree in (ROOT, old):
        ran = site.run("site.yml")
        assert ran.code == 0, ran.text
        assert belongings(site) == before
        if site.tree is old:
            site.sync()  # its program packs the vectors in another way: the next sync tells it to
        site.run("playbooks/doctor.yml", doctor_report_path=str(report))
        rows = json.loads(report.read_text())["rows"]
        assert [row for row in rows if row["level"] not in ("OK", "SKIP")] == []
        assert belongings(site) == before

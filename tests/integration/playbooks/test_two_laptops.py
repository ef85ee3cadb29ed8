"""A second laptop joins, is found in the same answers under its own name, and leaves alone, in either way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from tests.doubles import digup
from tests.doubles.model import HashedWords
from tests.integration.playbooks.conftest import Site

pytestmark = pytest.mark.timeout(900)
NOTE = (
    "path: Documents/{0} note.txt\nkind: doc\nmodified: 2026-03-01T09:00:00\n---\nAn axolotl sings in {0}.\n"
)


def add_note(site: Site, laptop: str) -> None:
    home = site.root / ".demo" / laptop
    folder = home / "Library" / "Application Support" / "DigUp" / "index.noindex"
    with digup.Index(folder, home=str(home), model=HashedWords()) as index:
        index.add(digup.read_sample(NOTE.format(laptop)))


def found(site: Site, words: str) -> dict[str, str]:
    """Name of each found file, by the machine that it is on."""
    hits = site.search(words)["hits"]
    return {hit["machine"]: hit["path"].rpartition("/")[2] for hit in reversed(hits)}


@pytest.fixture
def second(site: Site) -> Iterator[str]:
    """The inventory name of another laptop, with an index."""
    name, inventory = "airbook", site.inventory / "second.json"
    add_note(site, name)
    inventory.write_text(json.dumps({"laptops": {"hosts": {name: {}}}}))
    yield name
    inventory.unlink()
    shutil.rmtree(site.agent / ".local" / "share" / "hermes-digup" / "sources" / name)
    shutil.rmtree(site.root / ".demo" / name)


def test_two_laptops_answer_together_and_one_of_them_leaves_alone(site: Site, second: str) -> None:
    add_note(site, "macbook")
    site.sync()
    ran = site.run("site.yml", "--limit", f"raspberrypi,{second}")
    assert ran.code == 0, ran.text
    assert found(site, "axolotl sings") == {"macbook": "macbook note.txt", second: f"{second} note.txt"}

    (site.inventory / "second.json").write_text(
        json.dumps({"laptops": {"hosts": {second: {"digup_sync_state": "absent"}}}})
    )
    ran = site.run("site.yml", "--limit", second)
    assert ran.code == 0, ran.text
    assert found(site, "axolotl sings") == {"macbook": "macbook note.txt"}


def test_uninstalling_one_laptop_shuts_its_door_at_the_pi_and_says_so_when_the_pi_is_away(
    site: Site, second: str
) -> None:
    keys = site.agent / ".ssh" / "authorized_keys"
    away = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    only_second = ("playbooks/uninstall.yml", "--limit", second, "-e", "uninstall_confirm=yes")
    ran = site.run("site.yml", "--limit", f"raspberrypi,{second}")
    assert ran.code == 0, ran.text
    keys.parent.mkdir(mode=0o700, exist_ok=True)
    keys.write_text(f"restrict AAAA hermes-digup:macbook\nrestrict AAAB hermes-digup:{second}\n")

    (site.inventory / "host_vars" / "raspberrypi.json").write_text(json.dumps(away))
    ran = site.run(*only_second)
    (site.inventory / "host_vars" / "raspberrypi.json").unlink()
    assert ran.code != 0
    told = " ".join(ran.text.split())
    assert f"the key line and the copies of {second} are still there" in told, ran.text
    assert f"run: ansible-playbook playbooks/uninstall.yml -e uninstall_confirm=yes --limit {second}" in told
    assert not list((site.root / ".demo" / second).rglob("digup-sync.sh"))
    assert set(found(site, "axolotl sings")) == {"macbook", second}

    ran = site.run(*only_second)
    assert ran.code == 0, ran.text
    assert set(found(site, "axolotl sings")) == {"macbook"}
    assert keys.read_text() == "restrict AAAA hermes-digup:macbook\n"
    keys.unlink()
    ran = site.run(*only_second)
    assert (ran.code, set(ran.changed.values())) == (0, {0}), ran.text

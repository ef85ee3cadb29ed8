"""The playbooks of every day against one deployed site: doctor, sync_now, rotate_key, uninstall."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.doubles import digup
from tests.doubles.model import HashedWords
from tests.doubles.omlx import OmlxDouble
from tests.integration.asking import Asker
from tests.integration.playbooks.conftest import SAMPLES, Site

pytestmark = pytest.mark.timeout(900)
QUESTION = "can I keep a dog in my apartment"
NOTE = """path: Documents/Fresh note.txt
kind: doc
modified: 2026-03-01T09:00:00
---
The quokka has moved into the lighthouse.
"""


def sub_keys(omlx: OmlxDouble) -> list[str]:
    return [entry["key"] for entry in omlx.state.settings["auth"]["sub_keys"]]


def embedding_status(omlx: OmlxDouble, key: str) -> int:
    """HTTP status of a request for a vector with this key."""
    asked = {"model": "embeddinggemma-2", "input": ["task: search result | query: tea"]}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{omlx.url}/v1/embeddings", json.dumps(asked).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_second_run_of_site_changes_nothing_and_says_what_each_host_does(site: Site) -> None:
    ran = site.run("site.yml")
    assert (ran.code, set(ran.changed.values())) == (0, {0}), ran.text
    summary = ran.text[ran.text.index("Say what each host does") : ran.text.index("PLAY RECAP")]
    assert re.search(r"mac-mini +serves embeddinggemma-2 at http://", summary), summary
    assert re.search(r"raspberrypi +searches the files of macbook", summary), summary
    assert re.search(r"macbook +sends DigUp's index every 15 minutes", summary), summary
    assert re.search(
        r"Asked on raspberrypi for .*it\s+found\s+in\s+\d+\s+ms\s+on\s+macbook:\n +/.+/Documents/",
        summary,
        re.S,
    ), summary
    assert re.search(r"It takes [1-9]\d* MB of disk there, and [1-9]\d* MB of memory", summary), summary
    assert re.search(r"This run took \d+ min", summary), summary
    assert [line for line in summary.splitlines()[1:] if len(line) > 80 and "/Documents/" not in line] == []


def test_the_doctor_of_a_healthy_site_finds_nothing_to_mend(site: Site, tmp_path: Path) -> None:
    """Its report is one for strangers: no host is named in it."""
    report = {"doctor_report_path": str(tmp_path / "report.json"), "doctor_redact": True}
    ran = site.run("playbooks/doctor.yml", **report)
    rows = site.rows(ran, tmp_path / "report.json")
    assert (ran.code, set(ran.changed.values())) == (0, {0}), ran.text
    assert set(rows.values()) == {"OK", "SKIP"}, rows
    assert {"laptop-1: last sync", "model-server-1: vectors", "agent-1: MCP server"} <= set(rows)
    assert rows["agent-1: model server"] == "OK"
    assert re.search("macbook|mac-mini|raspberrypi", (tmp_path / "report.json").read_text()) is None


def test_the_doctor_names_what_is_broken_and_a_host_that_is_away(site: Site, tmp_path: Path) -> None:
    config = site.agent / ".config" / "hermes-digup" / "config.env"
    kept = config.read_text()
    away = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    (site.inventory / "host_vars" / "macbook.yml").write_text(json.dumps(away))
    config.write_text(re.sub(r"(?m)^DIGUP_EMBED_API_KEY=.*", "DIGUP_EMBED_API_KEY=not-the-key", kept))
    env = site.model_server / ".config" / "hermes-digup" / "embedding-server.env"
    env.rename(env.with_name("hidden"))
    try:
        ran = site.run("playbooks/doctor.yml", doctor_report_path=str(tmp_path / "report.json"))
    finally:
        config.write_text(kept)
        env.with_name("hidden").rename(env)
        (site.inventory / "host_vars" / "macbook.yml").unlink()
    rows = site.rows(ran, tmp_path / "report.json")
    assert ran.code != 0, ran.text
    failed = {row for row, level in rows.items() if level == "FAIL"}
    assert failed == {"raspberrypi: model server", "mac-mini: file for the agents"}, ran.text
    assert {row for row in rows if row.startswith("macbook")} == {"macbook: host"}
    assert "fix: ansible-playbook site.yml --limit mac-mini" in ran.text
    table = ran.text[ran.text.index("Doctor | Show the table") : ran.text.index("Let the exit code")]
    assert [line for line in table.splitlines() if len(line) > 80 and " " in line.strip()] == []


def test_sync_now_ends_when_the_changed_index_is_found(site: Site) -> None:
    with digup.Index(site.index, home=str(site.laptop), model=HashedWords()) as index:
        index.add(digup.read_sample(NOTE))
    ran = site.run("playbooks/sync_now.yml")
    assert ran.code == 0, ran.text
    assert "macbook: delivered" in ran.text, ran.text
    assert site.search("quokka lighthouse")["hits"][0]["path"].endswith("Documents/Fresh note.txt")


def test_rotate_key_deletes_the_old_key_only_when_the_agent_has_proved_the_new_one(
    site: Site, omlx: OmlxDouble
) -> None:
    old = sub_keys(omlx)
    ran = site.run("playbooks/rotate_key.yml", hermes_digup_embed_key="not-the-key")
    assert ran.code != 0
    assert "The old key stays valid on mac-mini" in ran.text and "raspberrypi says:" in ran.text, ran.text
    assert old[0] in sub_keys(omlx) and len(sub_keys(omlx)) == 2

    with Asker(site.agent, QUESTION) as asker:
        ran = site.run("playbooks/rotate_key.yml")
        after = asker.more(2)
    new = sub_keys(omlx)
    assert ran.code == 0, ran.text
    assert asker.faults == [] and len(asker.versions) == 1
    assert [answer for answer in after if "words_only" in answer] == []
    assert len(new) == 1 and new != old
    assert embedding_status(omlx, old[0]) == 401
    assert embedding_status(omlx, new[0]) == 200
    assert all(key not in ran.text for key in old + new)
    answer = site.search(QUESTION)
    assert {hit["matched"] for hit in answer["hits"]} & {"meaning", "both"}, answer


def test_uninstall_without_a_confirmation_says_what_it_would_remove(site: Site) -> None:
    before = site.ours()
    ran = site.run("playbooks/uninstall.yml")
    assert ran.code != 0
    assert "Nothing was removed." in ran.text and "laptops (macbook)" in ran.text, ran.text
    assert site.ours() == before


@pytest.mark.usefixtures("at_the_very_end")
def test_uninstall_with_purge_leaves_nothing_of_ours(site: Site, omlx: OmlxDouble) -> None:
    omlx.add_sub_key("somebody-elses", name="other")
    ran = site.run("playbooks/uninstall.yml", uninstall_confirm=True, uninstall_purge=True)
    assert ran.code == 0, ran.text
    assert site.ours() == []
    assert sub_keys(omlx) == ["somebody-elses"]
    assert (site.index / "index.sqlite").exists() and SAMPLES.exists()

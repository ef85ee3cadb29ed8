"""The whole role, run by Ansible against an oMLX double: first and second run, check mode, absent, logs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.doubles.omlx import OmlxDouble
from tests.doubles.omlx_state import Personality

ROOT = Path(__file__).parents[3]
SELF = "127.0.0.2"  # bound by 0.0.0.0, not by 127.0.0.1: stands for the Mac's own tailnet address
SECRETS = {"main": "main-key-dummy-7f3a", "token": "hf_good-dummy-9c1b", "other": "other-key-dummy-5d2e"}
HIDDEN = (*SECRETS.values(), "omlx_admin_session=")
PLAY = [
    {"hosts": "mac", "gather_subset": ["!all", "!min", "env"], "roles": ["omlx_server"]},
    {
        "hosts": "pi",
        "gather_facts": False,
        "tasks": [
            {
                "ansible.builtin.include_role": {"name": "omlx_server", "tasks_from": "key"},
                "vars": {"omlx_server_key_host": "mac"},
            }
        ],
    },
]


class Site:
    """A model server and an agent on this machine, and the role run for them."""

    def __init__(self, folder: Path, personality: Personality) -> None:
        self.folder, self.home = folder, folder / "home"
        self.omlx = OmlxDouble(self.home / ".omlx", personality=personality, api_key=SECRETS["main"])
        self.log = ""
        (folder / "play.yml").write_text(json.dumps(PLAY))
        self.variables: dict[str, Any] = {
            "omlx_server_home": str(self.home),
            "omlx_server_agent_urls": [SELF],
            "omlx_server_prove_from": ["pi"],
            "omlx_server_hf_token": SECRETS["token"],
            "omlx_server_progress_seconds": 1,
        }

    @property
    def env_file(self) -> Path:
        return self.home / ".config" / "hermes-digup" / "embedding-server.env"

    def run(self, *options: str, state: str = "present") -> int:
        """Run the play. Returns how many tasks changed something; the output is kept for the search."""
        hosts = {"mac": {**self.variables, "omlx_server_state": state}, "pi": {}}
        shared = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "project_root": str(ROOT),
        }
        inventory = self.folder / "hosts.json"
        inventory.write_text(json.dumps({"all": {"vars": shared, "hosts": hosts}}))
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        done = subprocess.run(
            [program, "-vvv", "--diff", "-i", str(inventory), *options, str(self.folder / "play.yml")],
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
        output = done.stdout + done.stderr
        self.log += output
        assert done.returncode == 0, output[-6000:]
        return sum(map(int, re.findall(r"changed=(\d+)", output)))

    def kept(self) -> dict[str, Any]:
        """What in oMLX is none of our business."""
        files = {name: json.loads((self.home / ".omlx" / name).read_text()) for name in FILES}
        files["settings.json"]["server"].pop("host")
        files["model_settings.json"]["models"].pop("embeddinggemma-2", None)
        return files


FILES = ("settings.json", "model_settings.json")


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    made = Site(tmp_path, Personality(download_s=12.0, downtime_s=0.8, **request.param))
    made.omlx.add_sub_key(SECRETS["other"], "other")
    made.omlx.add_model("mlx-community/tiny-chat", "llama")
    made.omlx.state.model_settings["tiny-chat"] = {"is_pinned": False, "ttl_seconds": 60}
    made.omlx.start()
    made.omlx.state.load("tiny-chat")
    yield made
    made.omlx.stop()


@pytest.fixture
def _restarted_by_command(site: Site) -> Iterator[None]:
    """Stands for Homebrew: a command outside, after which the server is another process."""
    if site.omlx.personality.supervised:
        yield
        return
    wish, over = site.folder / "restart", threading.Event()
    site.variables["omlx_server_restart_command"] = ["/usr/bin/touch", str(wish)]

    def watch() -> None:
        while not over.wait(0.1):
            if wish.exists():
                wish.unlink()
                site.omlx.restart()

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield
    over.set()
    watcher.join()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("site", [{"strict": True}], indirect=True)
def test_the_role_sets_up_once_tells_the_truth_and_takes_it_all_back(site: Site) -> None:
    before = site.kept()
    bare = site.run("--check", "--limit", "mac")
    assert bare >= 5 and site.kept() == before and not site.env_file.exists()

    assert site.run() >= 4
    written = site.env_file.read_text()
    key = re.search(r"^DIGUP_EMBED_API_KEY=([0-9a-f]{64})$", written, re.MULTILINE)
    assert key and site.env_file.stat().st_mode & 0o777 == 0o600
    assert f"DIGUP_EMBED_URL=http://{SELF}:" in written and "DIGUP_EMBED_MODEL=embeddinggemma-2\n" in written
    assert "of 1.5 GB (" in site.log
    assert site.omlx.state.loaded == {"tiny-chat", "embeddinggemma-2"}

    assert site.run() == 0
    assert site.run("--check", "--limit", "mac") == 0
    assert site.run("--limit", "mac", state="absent") >= 3
    assert not site.env_file.parent.exists() and not site.omlx.state.pinned("embeddinggemma-2")
    assert site.run("--limit", "mac", state="absent") == 0
    assert site.kept() == before

    shown = [secret for secret in (*HIDDEN, key[1]) if secret in site.log]
    assert not shown, f"in the log: {shown}"


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("_restarted_by_command")
@pytest.mark.parametrize("site", [{"supervised": False}], indirect=True)
def test_a_server_without_a_supervisor_is_restarted_by_its_command_once(site: Site) -> None:
    site.omlx.add_model("google/embeddinggemma-2")
    assert site.run("--limit", "mac") >= 4
    assert site.omlx.state.settings["server"]["host"] == "0.0.0.0"
    assert site.run("--limit", "mac") == 0


@pytest.mark.timeout(900)
@pytest.mark.parametrize("site", [{}], indirect=True)
def test_an_agent_alone_gets_the_key_while_the_mac_is_limited_out(site: Site) -> None:
    site.omlx.add_model("google/embeddinggemma-2")
    assert site.run("--limit", "pi") == 1
    assert len([k for k in site.omlx.state.settings["auth"]["sub_keys"] if k["name"] == "hermes-digup"]) == 1
    assert site.run("--limit", "pi") == 0


@pytest.mark.timeout(900)
@pytest.mark.parametrize("site", [{"old": True}], indirect=True)
def test_an_old_omlx_ends_in_one_sentence(site: Site) -> None:
    site.variables["omlx_server_expose"] = "none"
    with pytest.raises(AssertionError, match="cannot serve embeddinggemma-2"):
        site.run("--limit", "mac")
    assert not site.env_file.exists()

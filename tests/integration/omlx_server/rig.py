"""Five Macs with an oMLX double each, each of another kind, and an agent: one inventory for all."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.doubles.omlx import OmlxDouble
from tests.doubles.omlx_state import Personality

ROOT = Path(__file__).parents[3]
SELF = "127.0.0.2"  # bound by 0.0.0.0, not by 127.0.0.1: stands for a Mac's own tailnet address
GEMMA, CHAT = "google/embeddinggemma-2", "mlx-community/tiny-chat"
TOKEN, OTHER_KEY = "hf_good-dummy-9c1b", "other-key-dummy-5d2e"
FILES = ("settings.json", "model_settings.json")
FACT = {
    "env": {"HOME": "{{ omlx_server_home }}"},
    "cacheable": True,
}  # the only one the role needs; much faster
MACS = {
    "hosts": "macs",
    "gather_facts": False,
    "environment": "{{ site_environment | default({}) }}",
    "pre_tasks": [{"ansible.builtin.set_fact": FACT}],
}
ROWS = {"content": "{{ omlx_server_out_rows | to_json }}", "dest": "{{ rows_path }}", "mode": "0600"}
PLAYS = {
    "set_up": [{**MACS, "roles": ["omlx_server"]}],
    "verify": [
        {
            **MACS,
            "tasks": [
                {"ansible.builtin.include_role": {"name": "omlx_server", "tasks_from": "verify"}},
                {"ansible.builtin.copy": ROWS},
            ],
        }
    ],
    "key": [
        {
            "hosts": "pi",
            "gather_facts": False,
            "tasks": [
                {
                    "ansible.builtin.include_role": {"name": "omlx_server", "tasks_from": "key"},
                    "vars": {"omlx_server_key_host": "strict"},
                }
            ],
        }
    ],
}


@dataclass(frozen=True)
class Ran:
    """One run of a playbook."""

    code: int
    text: str

    def failures(self) -> dict[str, str]:
        """The sentence in which each failed host ended."""
        found = re.findall(r"^fatal: \[(\w+)\]: FAILED! =>(.*?)^(?=\S|$)", self.text, re.M | re.S)
        return {host: " ".join(rest.partition("msg: ")[2].split()) for host, rest in found}

    def changed(self, host: str) -> set[str]:
        """Names of the tasks that changed something on a host, or with --check would."""
        tasks = re.split(r"^TASK \[", self.text, flags=re.M)[1:]
        return {task.partition("]")[0] for task in tasks if re.search(rf"^changed: \[{host}\]", task, re.M)}


class Mac:
    """A home folder with an oMLX in it that serves its user already."""

    def __init__(self, folder: Path, name: str, personality: Personality, base: str = ".omlx") -> None:
        self.name, self.home, self.key = name, folder / name, f"main-key-dummy-{name}-7f3a"
        self.omlx = OmlxDouble(self.home / base, personality=personality, api_key=self.key)
        self.omlx.add_sub_key(OTHER_KEY, "other")
        self.omlx.add_model(CHAT, "llama")
        self.omlx.state.model_settings["tiny-chat"] = {"is_pinned": False, "ttl_seconds": 60}
        self.omlx.start()
        self.omlx.state.load("tiny-chat")
        self.rows_path = folder / f"{name}.rows"
        self.variables: dict[str, Any] = {
            "omlx_server_home": str(self.home),
            "omlx_server_agent_urls": [SELF],
            "omlx_server_progress_seconds": 1,
            "rows_path": str(self.rows_path),
        }

    @property
    def ours(self) -> Path:
        return self.home / ".config" / "hermes-digup"

    @property
    def gemma(self) -> str:
        return next(id for id in self.omlx.state.models if "gemma" in id)

    def files(self) -> dict[str, str]:
        """oMLX's own files, byte for byte."""
        return {name: (self.omlx.base / name).read_text() for name in FILES}

    def rows(self) -> dict[str, tuple[str, str]]:
        """Level, detail and fix of each row that verify has published."""
        return {
            row["check"]: (row["level"], f"{row['detail']} | {row['fix']}")
            for row in json.loads(self.rows_path.read_text())
        }

    def restarted_by(self, wish: Path, over: threading.Event) -> threading.Thread:
        """Stands for a command outside, after which the server is another process."""

        def watch() -> None:
            while not over.wait(0.1):
                if wish.exists():
                    wish.unlink()
                    self.omlx.restart()

        watcher = threading.Thread(target=watch)
        watcher.start()
        return watcher


def macs(folder: Path, over: threading.Event) -> dict[str, Mac]:
    """Every kind of oMLX that the role is to understand. `over` ends what restarts some of them."""
    quick = {"downtime_s": 0.5}
    strict = Mac(folder, "strict", Personality(strict=True, gated=True, download_s=40.0, **quick))
    strict.variables |= {"omlx_server_hf_token": TOKEN, "omlx_server_prove_from": ["pi"]}

    app = Mac(folder, "app", Personality(**quick), base="oMLX data")
    support = app.home / "Library" / "Application Support" / "oMLX"
    support.mkdir(parents=True)
    (support / "base-path").write_text("~/oMLX data\n")
    app.variables["omlx_server_admin_key"] = app.key
    app.omlx.add_model(GEMMA)

    homebrew = Mac(folder, "homebrew", Personality(supervised=False, **quick))
    brew = homebrew.home / "brewed" / "bin" / "brew"
    brew.parent.mkdir(parents=True)
    brew.write_text(f'#!/bin/sh\n[ "$*" = "services restart omlx" ] && touch "{homebrew.home}/wish"\n')
    brew.chmod(0o755)
    brew.with_name("omlx").touch()
    homebrew.variables["site_environment"] = {"HOMEBREW_PREFIX": str(brew.parents[1])}
    homebrew.omlx.add_model("mlx-community/embeddinggemma-2-8bit")

    by_hand = Mac(folder, "by_hand", Personality(supervised=False, **quick))
    by_hand.variables["omlx_server_restart_command"] = ["/usr/bin/touch", str(by_hand.home / "wish")]
    by_hand.omlx.add_model(GEMMA)

    old = Mac(folder, "old", Personality(old=True, **quick))
    for one in (homebrew, by_hand):
        one.restarted_by(one.home / "wish", over)
    return {one.name: one for one in (strict, app, homebrew, by_hand, old)}


class Site:
    """The inventory of all Macs and the agent, and the role run for them."""

    def __init__(self, folder: Path, over: threading.Event) -> None:
        self.folder, self.macs, self.log = folder, macs(folder, over), ""
        shared = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "project_root": str(ROOT),
        }
        hosts = {name: mac.variables for name, mac in self.macs.items()}
        inventory = {"vars": shared, "children": {"macs": {"hosts": hosts}, "agents": {"hosts": {"pi": {}}}}}
        (folder / "hosts.json").write_text(json.dumps({"all": inventory}))
        for name, play in PLAYS.items():
            (folder / f"{name}.yml").write_text(json.dumps(play))

    def run(self, play: str, *options: str, seen: Callable[[str], None] = lambda _: None) -> Ran:
        """Run a play, loudly. `seen` is told each line at the moment it is printed."""
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        command = [program, "-vvv", "--diff", "-f", "5", "-i", str(self.folder / "hosts.json"), *options]
        lines = []
        with subprocess.Popen(
            [*command, str(self.folder / f"{play}.yml")],
            cwd=ROOT,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                seen(line)
        ran = Ran(process.returncode, "".join(lines))
        self.log += ran.text
        return ran

    def files(self) -> dict[str, dict[str, str]]:
        return {name: mac.files() for name, mac in self.macs.items()}

"""`make setup` as a person meets it: the real program, real ssh, a real sshd."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.sync.sshd import free_port, new_host_key, sshd

ROOT = Path(__file__).resolve().parents[3]
ME = getpass.getuser()
STATUS = {
    "BackendState": "Running",
    "Self": {"DNSName": "desk.tail1.ts.net.", "OS": "linux", "TailscaleIPs": ["100.64.0.9"]},
    "Peer": {
        "a": {"DNSName": "macbook.tail1.ts.net.", "OS": "macOS"},
        "b": {"DNSName": "mac-mini.tail1.ts.net.", "OS": "macOS"},
        "c": {"DNSName": "raspberrypi.tail1.ts.net.", "OS": "linux"},
    },
}


class Desk:
    """A folder as after `git clone`, with ssh leading to an sshd of this test whatever host is named."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.keys = folder / "a clone", folder / "authorized_keys"
        shutil.copytree(ROOT / "inventories" / "example", self.folder / "inventories" / "example")
        shutil.copytree(ROOT / "inventories" / "setup", self.folder / "inventories" / "setup")
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.path = f"{self.bin}:{os.environ['PATH']}"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
        self.public_key = (folder / "key.pub").read_text()
        config = folder / "ssh_config"
        config.write_text(
            f"Host *\nHostName 127.0.0.1\nPort {port}\nUser {ME}\n"
            f'IdentityFile "{folder}/key"\nIdentitiesOnly yes\nIdentityAgent none\n'
            f'UserKnownHostsFile "{folder}/known_hosts"\nStrictHostKeyChecking accept-new\n'
        )
        self.command("ssh", f'exec {shutil.which("ssh")} -F "{config}" "$@"')
        self.command("tailscale", f"cat <<'EOF'\n{json.dumps(STATUS)}\nEOF")

    def command(self, name: str, body: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.bin / name).chmod(0o755)

    def setup(self, *answers: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "inventories.setup"],
            cwd=self.folder,
            input="".join(f"{answer}\n" for answer in answers),
            env={**os.environ, "PATH": self.path, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def hosts(self) -> dict[str, dict[str, str]]:
        listing = [Path(sys.executable).with_name("ansible-inventory"), "-i", "inventories/home", "--list"]
        done = subprocess.run(listing, cwd=self.folder, check=True, capture_output=True, text=True)
        found: dict[str, dict[str, str]] = json.loads(done.stdout)["_meta"]["hostvars"]
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    port = free_port()
    new_host_key(tmp_path)
    desk = Desk(tmp_path, port)
    desk.keys.write_text(desk.public_key)
    with sshd(tmp_path, desk.keys, port):
        yield desk


def test_three_times_enter_make_an_inventory_that_ansible_reads(desk: Desk) -> None:
    done = desk.setup("", "", f"{ME}@raspberrypi.tail1.ts.net")
    assert done.returncode == 0, done.stderr
    hosts = desk.hosts()
    assert {name: (of["ansible_user"], of["ansible_host"]) for name, of in hosts.items()} == {
        "macbook": (ME, "macbook.tail1.ts.net"),
        "mac-mini": (ME, "mac-mini.tail1.ts.net"),
        "raspberrypi": (ME, "raspberrypi.tail1.ts.net"),
    }
    assert (desk.folder / "inventories/home/group_vars/agents.yml").exists()
    # The machine behind all three names is this one, which is no Mac.
    assert done.stdout.count("lets") == 3
    assert "macbook  to do  This is no Mac but Linux" in done.stdout
    assert "ansible-playbook site.yml" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_a_login_that_is_not_let_in_gets_the_one_line_to_run_and_is_tried_again(desk: Desk) -> None:
    desk.keys.write_text("")
    done = desk.setup(f"{ME}@pi", "-", f"{ME}@pi", "", "s")
    assert done.returncode == 0
    assert done.stdout.count(f"ssh-copy-id {ME}@pi\n") == 2
    assert set(desk.hosts()) == {"pi"}


def test_a_password_is_never_asked_for(desk: Desk) -> None:
    desk.command("ssh", 'echo "$@" >&2; exit 255')
    assert "-o BatchMode=yes" in desk.setup(f"{ME}@pi", "-", f"{ME}@pi").stdout


def test_without_ssh_on_this_machine_it_is_said(desk: Desk) -> None:
    (desk.bin / "ssh").unlink()
    desk.path = str(desk.bin)
    done = desk.setup(f"{ME}@pi", "-", f"{ME}@pi")
    assert done.returncode == 0, done.stderr
    assert "cannot be run on this machine" in done.stdout


def test_an_inventory_that_is_there_is_left_as_it_is(desk: Desk) -> None:
    home = desk.folder / "inventories" / "home"
    home.mkdir()
    (home / "hosts.yml").write_text("mine\n")
    done = desk.setup()
    assert (done.returncode, (home / "hosts.yml").read_text()) == (0, "mine\n")
    assert "left as it is" in done.stdout


def test_stopped_before_the_last_answer_nothing_is_written(desk: Desk) -> None:
    done = desk.setup(f"{ME}@macbook", "-x@y", "one two", "-")
    assert done.returncode == 1
    assert '"-x" is no login name' in done.stdout
    assert "Please name one machine" in done.stdout
    assert "Nothing was written" in done.stdout
    assert not (desk.folder / "inventories" / "home").exists()

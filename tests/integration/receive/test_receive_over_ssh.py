"""The laptop's key against a real sshd: its line in authorized_keys, paths with blanks, no other door."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.publishing.deliveries import MAIN, Laptop, mark_in_use, sample
from tests.integration.receive.test_receive import RRSYNC, Pi

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(
    SSHD is None or not RRSYNC.exists(),
    reason="sshd or rrsync is missing: apt-get install openssh-server rsync",
)

CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile "{folder}/authorized keys"
StrictModes no
UsePAM no
PasswordAuthentication no
Subsystem sftp internal-sftp
"""


@pytest.fixture
def pi(tmp_path: Path) -> Pi:
    return Pi(tmp_path)


@pytest.fixture
def ssh(pi: Pi, tmp_path: Path) -> Iterator[list[str]]:
    """A command that logs in with the laptop's key; its line restricts it to `receive`."""
    assert SSHD
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    public = (tmp_path / "key.pub").read_text()
    forced = f"'{pi.receive}' macbook"
    (tmp_path / "authorized keys").write_text(f'restrict,command="{forced}" {public}')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "sshd_config").write_text(CONFIG.format(port=port, folder=tmp_path))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    options = ["-F", "none", "-i", str(tmp_path / "key"), "-p", str(port), "-l", getpass.getuser()]
    for option in (
        "BatchMode=yes",
        "StrictHostKeyChecking=no",
        "UserKnownHostsFile=/dev/null",
        "LogLevel=ERROR",
    ):
        options += ["-o", option]
    with subprocess.Popen(
        [SSHD, "-D", "-e", "-f", tmp_path / "sshd_config"], stderr=subprocess.DEVNULL
    ) as server:
        wait_for(port)
        yield ["ssh", *options]
        server.terminate()


def wait_for(port: int) -> None:
    give_up = time.monotonic() + 30
    while True:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < give_up, "sshd did not come up"
        time.sleep(0.05)


def run(command: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_delivery_through_the_restricted_key_is_published(pi: Pi, ssh: list[str], tmp_path: Path) -> None:
    outbox = Laptop(tmp_path / "outbox")
    outbox.deliver(sample())
    rsync = ["rsync", "-c", "-t", "--block-size=4096", "-e", " ".join(ssh)]

    for names in ([MAIN], ["confirmed.json", "manifest.json"]):
        sent = run(rsync, *(str(outbox.landing / name) for name in names), "127.0.0.1:./")
        assert sent.returncode == 0, sent.stderr
    answer = run(ssh, "127.0.0.1", "publish")

    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["state"] in {"published", "unchanged"}
    assert json.loads(run(ssh, "127.0.0.1", "status").stdout)["state"] == "published"
    assert mark_in_use(pi.source) == "1"


@pytest.mark.parametrize("command", [[], ["id"], ["sh", "-c", "id"], ["publish;id"], ["-s", "sftp"]])
def test_the_key_gives_no_shell_no_sftp_and_no_other_word(command: list[str], pi: Pi, ssh: list[str]) -> None:
    options, words = ([], command) if command[:1] != ["-s"] else (["-s"], command[1:])

    answer = run(ssh, *options, "127.0.0.1", *words)

    assert answer.returncode == 64
    assert answer.stdout == ""
    assert options or "this key can only deliver" in answer.stderr


def test_the_key_forwards_nothing(pi: Pi, ssh: list[str]) -> None:
    answer = run(ssh, "-W", "127.0.0.1:22", "127.0.0.1")

    assert answer.returncode != 0
    assert answer.stdout == ""

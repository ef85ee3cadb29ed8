"""A real sshd on loopback that reads the Pi's own authorized_keys."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.sync.rig import wait_for

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey "{folder}/host_key"
PidFile none
AuthorizedKeysFile "{keys}"
StrictModes no
UsePAM no
PasswordAuthentication no
"""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def new_host_key(folder: Path) -> None:
    for name in ("host_key", "host_key.pub"):
        (folder / name).unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "host_key"], check=True)


@contextmanager
def sshd(folder: Path, keys: Path, port: int) -> Iterator[int]:
    """Runs while the context is open, and yields its process id; the host key is `folder/host_key`."""
    assert SSHD
    (folder / "sshd_config").write_text(CONFIG.format(port=port, folder=folder, keys=keys))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with subprocess.Popen(
        [SSHD, "-D", "-e", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL
    ) as server:
        try:
            wait_for(lambda: _listens(port), 30)
            yield server.pid
        finally:
            server.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0

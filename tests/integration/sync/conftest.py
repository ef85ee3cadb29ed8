"""Fixtures: a laptop and its Pi, joined by the ssh double, or by a real sshd on loopback."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.sync.rig import ROOT, SOURCE, Laptop, Pi
from tests.integration.sync.sshd import SSHD, free_port, new_host_key, sshd
from tests.integration.sync.wire import Line

MISSING = [tool for tool in ("sqlite3", "rsync", "rrsync") if shutil.which(tool) is None]


@pytest.fixture
def pi(tmp_path: Path) -> Pi:
    if MISSING:
        pytest.skip(f"not installed here: {', '.join(MISSING)}")
    return Pi(tmp_path / "pi")


@pytest.fixture
def laptop(tmp_path: Path, pi: Pi) -> Laptop:
    return Laptop(tmp_path / "mac", pi)


@pytest.fixture
def line(tmp_path: Path, laptop: Laptop, pi: Pi) -> Iterator[Line]:
    """Between this laptop and a real sshd at the Pi, with the ssh config that the role writes."""
    if SSHD is None:
        pytest.skip("sshd is missing: apt-get install openssh-server")
    jinja2 = pytest.importorskip("jinja2", reason="ansible-core is not installed here")
    key, port = laptop.config / "sync_key", free_port()
    new_host_key(tmp_path)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    host_key = (tmp_path / "host_key.pub").read_text()
    (laptop.config / "known_hosts").write_text(f"raspberrypi {host_key}")
    pi.admit(key.with_suffix(".pub").read_text())
    del laptop.settings["DIGUP_SSH"]
    with sshd(tmp_path, pi.keys, port) as pi.sshd:
        line = Line(port)
        template = (ROOT / "templates" / "laptop" / "ssh_config.j2").read_text()
        config = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True).from_string(template)
        (laptop.config / "ssh_config").write_text(
            config.render(
                digup_sync_agent="raspberrypi",
                digup_sync_agent_host="127.0.0.1",
                digup_sync_agent_port=line.port,
                digup_sync_source=SOURCE,
                __digup_sync_agent_user=getpass.getuser(),
                __digup_sync_key=str(key),
                __digup_sync_known_hosts=str(laptop.config / "known_hosts"),
                __digup_sync_receive=str(pi.receive),
            )
        )
        yield line
        line.close()

"""The host itself: without these, a later test would prove nothing about a Pi."""

from __future__ import annotations

from testinfra.host import Host


def test_systemd_runs_the_host(host: Host) -> None:
    assert host.check_output("cat /proc/1/comm") == "systemd"

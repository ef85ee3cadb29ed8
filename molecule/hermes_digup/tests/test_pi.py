"""A Pi after the role, with one delivered index: run twice, the second time after the host was restarted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testinfra.host import Host

HOME = "/home/pi"
DATA = f"{HOME}/.local/share/hermes-digup"


def as_pi(host: Host, command: str) -> Any:
    return host.run(f"runuser -u pi -- env -i HOME={HOME} PATH=/usr/bin:/bin sh -c %s", command)


def searched(host: Host, question: str) -> list[dict[str, Any]]:
    answer = as_pi(host, f"{HOME}/.local/bin/hermes-digup search --json {question}")
    assert answer.rc == 0, answer.stderr
    return list(json.loads(answer.stdout)["hits"])


def test_systemd_runs_the_host(host: Host) -> None:
    # Otherwise none of the others would say anything about a Pi.
    assert host.check_output("cat /proc/1/comm") == "systemd"


def test_the_command_says_its_version(host: Host) -> None:
    answer = as_pi(host, f"{HOME}/.local/bin/hermes-digup --version")
    assert answer.rc == 0, answer.stderr
    assert answer.stdout.startswith("hermes-digup ")


@pytest.mark.parametrize("folder", ["sources", "sources/laptop", "sources/laptop/landing"])
def test_the_sources_are_private(host: Host, folder: str) -> None:
    found = host.file(f"{DATA}/{folder}")
    assert found.is_directory
    assert (found.user, found.mode) == ("pi", 0o700)


def test_the_settings_are_private(host: Host) -> None:
    found = host.file(f"{HOME}/.config/hermes-digup/config.env")
    assert found.is_file
    assert (found.user, found.mode) == ("pi", 0o600)


def test_the_laptops_key_gets_the_status_of_its_source(host: Host) -> None:
    answer = as_pi(host, f"SSH_ORIGINAL_COMMAND=status {DATA}/bin/receive laptop")
    assert answer.rc == 0, answer.stderr
    status = json.loads(answer.stdout)
    assert (status["source"], status["state"]) == ("laptop", "published")
    assert status["generation"]


def test_the_laptops_key_gets_no_shell(host: Host) -> None:
    answer = as_pi(host, f"SSH_ORIGINAL_COMMAND='cat /etc/passwd' {DATA}/bin/receive laptop")
    assert answer.rc == 64
    assert "root:" not in answer.stdout


def test_a_delivered_document_is_found_by_its_words(host: Host) -> None:
    hits = searched(host, "landlord parrots")
    assert hits[0]["path"] == "/Users/ana/Documents/Lease Lindenstrasse.pdf"
    assert hits[0]["machine"] == "laptop"


def test_delivered_code_is_found_by_its_words(host: Host) -> None:
    hits = searched(host, "--code boil_water")
    assert hits[0]["path"] == "/Users/ana/src/kettle.py"


def test_what_is_in_no_file_is_not_found(host: Host) -> None:
    assert searched(host, "zeppelin") == []

"""A Pi after the role, with one delivered index: run twice, the second time after the host was restarted."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from testinfra.host import Host

HOME = "/home/pi"
DATA = f"{HOME}/.local/share/hermes-digup"


TOOLS = {"search_files", "search_code", "read_passage", "read_file", "browse_files", "index_status"}
GATEWAY_WITHIN_S = 60
# Run by Hermes's own Python: what its client registers, and what a model would read.
HERMES_CALLS = """
import json, os
from tools import mcp_tool
from tools.registry import registry
names = mcp_tool.discover_mcp_tools()
answer = registry.dispatch("mcp__digup__search_files", {"query": "landlord parrots"})
mcp_tool.shutdown_mcp_servers()
print(json.dumps([names, answer]), flush=True)
os._exit(0)
"""


def gateway(host: Host) -> str:
    """The process of Hermes's gateway."""
    show = "systemctl --user --machine=pi@ show --property MainPID --value hermes-gateway.service"
    return host.check_output(show)


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


def test_the_gateway_has_started_the_server(host: Host) -> None:
    find = "grep -l hermes-gateway.service $(pgrep -f '/bin/hermes-digup serve' | sed 's,.*,/proc/&/cgroup,')"
    deadline = time.monotonic() + GATEWAY_WITHIN_S
    while host.run(find).stdout.count("cgroup") < 2:  # Hermes's watchdog, and the server
        assert time.monotonic() < deadline, host.check_output("ps -ef")
        time.sleep(0.5)


def test_hermess_client_finds_a_document_with_nothing_but_the_gateways_environment(host: Host) -> None:
    python = f"{HOME}/.hermes/hermes-agent/venv/bin/python"
    calls = f'exec runuser -u pi -- env -i "$@" {python} -c %s'
    command = f"xargs -0 -a /proc/{gateway(host)}/environ sh -c %s sh"
    done = host.run(command, calls.replace("%s", "'" + HERMES_CALLS.replace("'", "'\\''") + "'"))
    assert done.rc == 0, done.stderr
    names, answer = json.loads(done.stdout.splitlines()[-1])
    assert set(names) == {f"mcp__digup__{tool}" for tool in TOOLS}
    assert "Lease Lindenstrasse.pdf" in json.loads(answer)["result"]


def test_the_config_keeps_hermess_mode_and_the_other_servers(host: Host) -> None:
    config = host.file(f"{HOME}/.hermes/config.yaml")
    assert (config.user, config.mode) == ("pi", 0o600)
    assert [name for name in ("weather:", "notes:", "digup:") if name not in config.content_string] == []
    assert "auto_load" not in config.content_string  # Hermes 0.19.0 does not know it


def test_the_http_service_runs_and_wants_its_token(host: Host) -> None:
    knock = "curl -s -o /dev/null -w '%{http_code}' -X POST http://127.0.0.1:8765/mcp"
    deadline = time.monotonic() + GATEWAY_WITHIN_S
    while host.run(knock).stdout != "401":  # after a restart of the host it takes a while
        assert time.monotonic() < deadline, host.run("journalctl -n 20 _UID=1000").stdout
        time.sleep(0.5)
    header = (
        f'-H "Authorization: Bearer $(sed -n s/^DIGUP_HTTP_TOKEN=//p {HOME}/.config/hermes-digup/config.env)"'
    )
    assert host.run(f"{knock} {header}").stdout not in ("401", "000")

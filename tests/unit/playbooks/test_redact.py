"""A report for strangers keeps what was found and loses whose it was."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[3] / "playbooks" / "filter_plugins" / "redact.py"
HOSTVARS = {
    "annas-book": {
        "group_names": ["laptops"],
        "ansible_host": "annas-book.tail1.ts.net",
        "ansible_user": "anna",
    },
    "raspberrypi": {"group_names": ["agents"], "ansible_host": "100.64.0.4", "ansible_user": "pi"},
    "mini": {"group_names": ["model_servers"], "ansible_user": "anna"},
}


@pytest.fixture
def redact():  # type: ignore[no-untyped-def]  # loaded as Ansible loads it
    spec = importlib.util.spec_from_file_location("redact", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FilterModule().filters()["redact"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("annas-book did not answer at annas-book.tail1.ts.net", "laptop-1 did not answer at laptop-1"),
        ("http://mini.tail1.ts.net:8000 refuses", "http://HOST:8000 refuses"),
        (
            "http://192.0.2.7:8000, http://[fd7a:115c:a1e0::4]:8000",
            "http://ADDRESS:8000, http://[ADDRESS]:8000",
        ),
        ("chmod 600 /home/pi/.config/hermes-digup/config.env", "chmod 600 ~/.config/hermes-digup/config.env"),
        ("/Users/anna/Documents/Divorce/lease.pdf is away", "~/... is away"),
        ("ansible-playbook site.yml --limit raspberrypi", "ansible-playbook site.yml --limit agent-1"),
        (
            "anna@mini, the pipeline is fine, 12:30:45 UTC, cosine 0.998",
            "user@model-server-1, the pipeline is fine, 12:30:45 UTC, cosine 0.998",
        ),
        ("", ""),
    ],
)
def test_names_addresses_and_folders_are_gone_and_the_finding_stays(redact, text: str, shown: str) -> None:  # type: ignore[no-untyped-def]  # a filter
    assert redact([{"host": "mini", "detail": text}], HOSTVARS) == [
        {"host": "model-server-1", "detail": shown}
    ]

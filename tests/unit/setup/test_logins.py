"""What ssh's words and a machine's facts mean for the person at the keyboard."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from inventories.setup import logins
from inventories.setup.machines import Machine

PI = Machine("raspberrypi", "raspberrypi.tail1.ts.net", "pi")


@pytest.mark.parametrize(
    ("said", "next_step"),
    [
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            f"ssh-keygen -R {PI.host}",
        ),
        ("No ED25519 host key is known for x\nHost key verification failed.", f"ssh-copy-id pi@{PI.host}"),
        ("ssh: connect to host x port 22: Connection refused", "Remote Login"),
        ("ssh: Could not resolve hostname x: Name or service not known", "spelling"),
        ("ssh: connect to host x port 22: Connection timed out", "awake"),
        ("ssh: connect to host x port 22: No route to host", "awake"),
        ("\x1b[31mkex_exchange_identification: broken", "kex_exchange_identification: broken"),
        ("", "it said: nothing"),
    ],
)
def test_each_way_of_being_kept_out_names_the_next_step(said: str, next_step: str) -> None:
    sentence = logins.why_no_login(PI, said)
    assert next_step in sentence
    assert "\x1b" not in sentence


@pytest.mark.parametrize("has_key", [True, False])
def test_without_a_key_one_is_made_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_key: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    if has_key:
        (tmp_path / ".ssh" / "id_ed25519.pub").touch()
    sentence = logins.why_no_login(PI, "pi@x: Permission denied (publickey,password).")
    assert ("ssh-keygen" in sentence) is not has_key
    assert sentence.endswith(f"\nssh-copy-id pi@{PI.host}")


MAC = {"system": "Darwin", "tools": "yes", "index": "yes", "omlx": "yes", "key": "set"}
LINUX = {
    "system": "Linux",
    "bits": "64",
    "python": "3.11",
    "venv": "yes",
    "rsync": "yes",
    "hermes": "yes",
    "sudo": "no",
}


@pytest.mark.parametrize(
    ("facts", "role", "said"),
    [
        (MAC, "laptops", []),
        (MAC, "model_servers", []),
        (LINUX, "agents", []),
        (MAC, "agents", []),
        (LINUX, "laptops", ["no Mac but Linux"]),
        (MAC | {"tools": "no"}, "model_servers", ["xcode-select --install"]),
        (MAC | {"index": "no"}, "laptops", ["open DigUp"]),
        (MAC | {"omlx": "no"}, "model_servers", ["oMLX has not been started"]),
        (MAC | {"key": "none"}, "model_servers", ["no main key"]),
        (MAC | {"key": "short"}, "model_servers", ["short"]),
        (MAC | {"key": "unchecked"}, "model_servers", ["does not check keys"]),
        (LINUX | {"bits": "32"}, "agents", ["64-bit"]),
        (LINUX | {"python": "3.9"}, "agents", ["3.9 is too old"]),
        (
            LINUX | {"python": "", "hermes": "no"},
            "agents",
            ["apt install python3", "Hermes Agent was not found"],
        ),
    ],
)
def test_what_a_machine_lacks_is_said(facts: dict[str, str], role: str, said: list[str]) -> None:
    sentences = logins.missing(facts, {role})
    assert len(sentences) == len(said)
    assert all(part in sentence for part, sentence in zip(said, sentences, strict=True))


def test_a_password_for_sudo_is_wanted_only_where_a_package_is_missing() -> None:
    assert not logins.wants_sudo_password(LINUX)
    assert logins.wants_sudo_password(LINUX | {"rsync": "no"})
    assert not logins.wants_sudo_password(LINUX | {"rsync": "no", "sudo": "yes"})


@pytest.mark.parametrize(
    ("auth", "key"),
    [
        ({"api_key": "m" * 32}, "set"),
        ({"api_key": "dummy-main-key"}, "short"),
        ({"api_key": None}, "none"),
        ({"api_key": "m" * 32, "skip_api_key_verification": True}, "unchecked"),
    ],
)
def test_a_mac_is_looked_at_without_showing_its_main_key(
    tmp_path: Path, auth: dict[str, object], key: str
) -> None:
    """uname, xcode-select and defaults are doubles; the rest is the script that runs on the Mac."""
    home, bin_, tools = tmp_path / "home", tmp_path / "bin", tmp_path / "tools"
    (tools / "usr" / "bin").mkdir(parents=True)
    (tools / "usr" / "bin" / "python3").symlink_to("/usr/bin/python3")
    (home / ".omlx").mkdir(parents=True)
    (home / ".omlx" / "settings.json").write_text(json.dumps({"auth": auth}))
    (home / "my index").mkdir()
    (home / "my index" / "index.sqlite").touch()
    bin_.mkdir()
    for name, text in {"uname": "Darwin", "xcode-select": tools, "defaults": "~/my index"}.items():
        (bin_ / name).write_text(f"#!/bin/sh\necho '{text}'\n")
        (bin_ / name).chmod(0o755)
    script = Path(logins.__file__).with_name("look.sh").read_text()
    done = subprocess.run(
        ["/bin/sh", "-s"],
        input=script,
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": str(home), "PATH": f"{bin_}:{os.environ['PATH']}"},
    )
    facts = dict(line.removeprefix("digup_").split("=") for line in done.stdout.split())
    assert facts == MAC | {"key": key, "done": "yes"}
    assert str(auth["api_key"]) not in done.stdout + done.stderr

"""Whether a machine lets us in and has what it needs, and what a person has to do if not."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from inventories.setup.machines import Machine

_LOOK = Path(__file__).with_name("look.sh").read_text(encoding="utf-8")
_FACT = re.compile(r"^digup_([a-z]+)=([A-Za-z0-9._-]{0,40})\r?$", re.MULTILINE)
_WAIT_SECONDS = 60

Facts = dict[str, str]


class LoginError(Exception):
    """Why nobody got in, and the one thing to do about it."""


def look(machine: Machine) -> Facts:
    """What is on the machine.

    Raises:
        LoginError: It could not be asked.
    """
    try:
        done = subprocess.run(
            ["sh", "-s"] if machine.is_this else _ssh(machine),
            input=_LOOK,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_WAIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LoginError(
            f"it did not answer within {_WAIT_SECONDS} s. Is it awake, and on the tailnet?"
        ) from None
    except OSError as error:
        raise LoginError(f"{error.filename} cannot be run on this machine: {error.strerror}") from None
    facts = dict(_FACT.findall(done.stdout))
    if facts.get("done") != "yes":
        raise LoginError(why_no_login(machine, done.stderr + done.stdout))
    return facts


def _ssh(machine: Machine) -> list[str]:
    return [
        "ssh",
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=10",
        "--",
        f"{machine.user}@{machine.host}",
        "sh -s",
    ]


def why_no_login(machine: Machine, said: str) -> str:
    """What ssh's words mean, and the next command or click."""
    target = f"{machine.user}@{machine.host}"
    if "HOST IDENTIFICATION HAS CHANGED" in said:
        return f"it shows another host key than before. If it was set up anew: ssh-keygen -R {machine.host}"
    if "Host key verification failed" in said:
        return f"this machine has not met it yet. Run, and answer yes:\nssh-copy-id {target}"
    if "Permission denied" in said:
        if _own_key() is None:
            return f"it wants a key, and you have none. Run:\nssh-keygen -t ed25519\nssh-copy-id {target}"
        return f"it does not know your key yet. Run:\nssh-copy-id {target}"
    if "Connection refused" in said:
        return (
            "it is there, but SSH is off. On a Mac: System Settings, General, Sharing, turn on Remote "
            "Login. On a Pi: sudo raspi-config, Interface Options, SSH."
        )
    if "Could not resolve" in said or "not known" in said:
        return "its name leads nowhere. Look at the spelling, and whether Tailscale is on at both ends."
    if "timed out" in said or "No route to host" in said or "unreachable" in said:
        return "it did not answer. Is it awake, and is Tailscale on at both ends?"
    lines = [line for line in said.splitlines() if line.strip()]
    last = "".join(letter for letter in lines[-1] if letter.isprintable())[:200] if lines else "nothing"
    return f"the login failed; it said: {last}"


def _own_key() -> Path | None:
    return next(Path.home().glob(".ssh/id_*.pub"), None)


def missing(facts: Facts, roles: set[str]) -> list[str]:
    """What a person still has to do on a machine with these roles, a sentence each."""
    todo = []
    is_mac = facts.get("system") == "Darwin"
    if roles & {"laptops", "model_servers"}:
        if not is_mac:
            return [f"This is no Mac but {facts.get('system', 'unknown')}: is the right machine named?"]
        if facts.get("tools") != "yes":
            todo.append("The Command Line Tools are missing. Run there: xcode-select --install")
    if "laptops" in roles and facts.get("index") != "yes":
        todo.append(
            "DigUp has no index yet: open DigUp there and let it index something. All else can go on."
        )
    if "model_servers" in roles:
        todo += _missing_at_omlx(facts)
    if "agents" in roles and not is_mac:
        todo += _missing_at_agent(facts)
    return todo


def _missing_at_omlx(facts: Facts) -> list[str]:
    if facts.get("omlx") != "yes":
        return [
            "oMLX has not been started there yet: install it, start it once, and set a main key (API key)."
        ]
    return {
        "none": ["oMLX has no main key. Set one in its settings (API key), 16 characters or longer."],
        "short": ["oMLX's main key is short, and guessing is not limited: take 16 characters or more."],
        "unchecked": ["oMLX does not check keys. Turn the check on in its settings."],
    }.get(facts.get("key", ""), [])


def _missing_at_agent(facts: Facts) -> list[str]:
    todo = []
    if facts.get("bits") == "32":
        todo.append("Its system is a 32-bit one. Install the 64-bit Raspberry Pi OS, Bookworm or newer.")
    if not facts.get("python"):
        todo.append("Python is missing. Run there: sudo apt install python3")
    elif tuple(int(part) for part in facts["python"].split(".")) < (3, 10):
        todo.append(
            f"Its Python {facts['python']} is too old (3.10 is needed): Raspberry Pi OS Bookworm brings 3.11."
        )
    if facts.get("hermes") != "yes":
        todo.append("Hermes Agent was not found for this login. Install it there, as this user.")
    return todo


def wants_sudo_password(facts: Facts) -> bool:
    """Whether something must be installed with a sudo that asks."""
    lacks = "no" in (facts.get("venv"), facts.get("rsync"))
    return facts.get("system") == "Linux" and lacks and facts.get("sudo") != "yes"

"""The machines a person names: how an answer is read, and what the tailnet proposes."""

from __future__ import annotations

import getpass
import ipaddress
import json
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from typing import Any

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\.?")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_TAILSCALE = ("tailscale", "/Applications/Tailscale.app/Contents/MacOS/Tailscale")


class AnswerError(Exception):
    """What is wrong with an answer, as a sentence."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A machine of the tailnet."""

    name: str
    system: str  # as Tailscale says it: "macOS", "linux", ...
    addresses: tuple[str, ...] = ()
    is_this: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """One line of the inventory."""

    name: str  # in the inventory, and in every answer ("on macbook")
    host: str
    user: str
    is_this: bool = False


def read_answer(answer: str, *, user: str, name: str, peers: list[Peer]) -> Machine:
    """`user@host` or `host` as a Machine.

    Args:
        answer: What the person typed.
        user: The login when the answer names none.
        name: The inventory's name when the host is a bare address.

    Raises:
        AnswerError: The answer is not a login and a host.
    """
    login, _, host = answer.strip().rpartition("@")
    login = login or user
    if not _USER.fullmatch(login):
        raise AnswerError(f'"{login}" is no login name. Answer as user@host, for instance {user}@{name}.')
    this = next((peer for peer in peers if peer.is_this), None)
    if host in _THIS_MACHINE:
        if this is None:
            raise AnswerError(
                f'"{host}" means another machine to everybody else. Give its name on the tailnet.'
            )
        host = this.name
    if _is_address(host):
        known = next((peer.name for peer in peers if host in peer.addresses), "")
        label = known.split(".")[0] or name
    elif len(host) <= 253 and _HOST.fullmatch(host):
        host = host.rstrip(".")
        label = host.split(".")[0]
    else:
        raise AnswerError(
            f'"{host}" is no host name or address. Answer as user@host, for instance {user}@{name}.'
        )
    return Machine(label, host, login, _is_this(host, this) and login == getpass.getuser())


def tailnet() -> list[Peer]:
    """The machines that Tailscale knows here; none when it is not running or not installed."""
    for command in _TAILSCALE:
        if program := shutil.which(command):
            try:
                done = subprocess.run(
                    [program, "status", "--json"], capture_output=True, text=True, timeout=10, check=False
                )
                return read_status(json.loads(done.stdout))
            except (OSError, ValueError, subprocess.TimeoutExpired):
                continue
    return []


def read_status(status: object) -> list[Peer]:
    """The machines in `tailscale status --json`, judged by its content; odd entries are left out."""
    if not isinstance(status, dict) or status.get("BackendState") != "Running":
        return []
    others = status.get("Peer")
    entries = [(status.get("Self"), True)]
    entries += [(entry, False) for entry in (others.values() if isinstance(others, dict) else [])]
    peers = [_peer(entry, is_this) for entry, is_this in entries if isinstance(entry, dict)]
    return [peer for peer in peers if len(peer.name) <= 253 and _HOST.fullmatch(peer.name)]


def propose(peers: list[Peer]) -> tuple[str, str, str]:
    """Hosts for the laptop, the model server and the agent; empty where nothing suits."""
    macs = sorted((peer for peer in peers if peer.system == "macOS"), key=_laptop_first)
    linux = sorted((peer for peer in peers if peer.system == "linux"), key=lambda peer: "pi" not in peer.name)
    names = [peer.name for peer in macs[:2]] + [""] * (2 - len(macs[:2]))
    return names[0], names[1], linux[0].name if linux else ""


def _laptop_first(peer: Peer) -> tuple[bool, bool]:
    return "book" not in peer.name, not peer.is_this


def _peer(entry: dict[str, Any], is_this: bool) -> Peer:
    addresses = entry.get("TailscaleIPs")
    return Peer(
        str(entry.get("DNSName") or "").rstrip("."),
        str(entry.get("OS") or ""),
        tuple(str(address) for address in addresses) if isinstance(addresses, list) else (),
        is_this,
    )


def _is_this(host: str, this: Peer | None) -> bool:
    own = {socket.gethostname().lower()}
    if this is not None:
        own |= {this.name.lower(), *this.addresses}
    return host.lower() in own


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

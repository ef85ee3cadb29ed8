"""Who can reach oMLX: the agents' addresses for this Mac, and what really answers there."""

from __future__ import annotations

import socket
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from ansible.module_utils.omlx_client import OmlxAwayError, exchange
from ansible.module_utils.omlx_install import WILDCARDS, base_url, is_loopback, split_hosts

_TAILNET = ip_network("100.64.0.0/10")
_ELSEWHERE = ("192.0.2.1", 9)  # an address kept for examples: choosing the way there sends nothing


def as_url(item, port):
    """A base URL as given, or one made from a bare name or address."""
    return item.rstrip("/") if "://" in item else base_url(item, port)


def listens_everywhere(saved):
    """True if the saved address is, or holds, a wildcard."""
    return any(host in WILDCARDS for host in split_hosts(saved))


def serves_the_network(reached):
    """True if every address beyond this Mac answers already (the user chose the addresses well)."""
    beyond = [state for url, state in reached.items() if not is_loopback(urlsplit(url).hostname or "")]
    return bool(beyond) and all(state == "answers" for state in beyond)


def open_to(port):
    """Base URLs on local networks at which oMLX answers: there, everybody can open its login."""
    urls = [base_url(address, port) for address in _local_addresses()]
    return [url for url, state in reach(urls).items() if state == "answers"]


def _local_addresses():
    """The address by which this Mac goes out, unless that is loopback or the tailnet."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_ELSEWHERE)
            address = probe.getsockname()[0]
    except OSError:  # no network
        return []
    return [] if is_loopback(address) or ip_address(address) in _TAILNET else [address]


def reach(urls):
    """What each base URL does, tried from here: "answers", "refused", or "unknown" (no such name)."""
    return {url: _reach(url) for url in urls}


def _reach(url):
    try:
        socket.getaddrinfo(urlsplit(url).hostname, None)
    except (OSError, UnicodeError):
        return "unknown"
    try:
        return "answers" if exchange(url + "/health", timeout=5).status in (200, 503) else "refused"
    except OmlxAwayError:
        return "refused"

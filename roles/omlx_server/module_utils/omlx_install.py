"""Where oMLX keeps its things on this Mac, read without asking its server (before any journey can start).

Everything here is read from files other programs write, so nothing is trusted: sizes are bounded, types are
checked, and what makes no sense counts as absent. Order of the base folder: our variable, OMLX_BASE_PATH, the
app's `base-path` file, the older app's `config.json`, `~/.omlx`. The home folder is always given: nothing
depends on who logs in.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

DEFAULT_PORT = 8000
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - compared with, never bound here
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
_MAX_FILE_BYTES = 4 * 1024 * 1024


class Install(NamedTuple):
    """What the files and the environment say about oMLX: `found` is false when none of its files is there."""

    base_dir: str
    found: bool
    port: int
    hosts: list
    main_key: str
    sub_keys: list


def discover(home, base_dir="", port=0, admin_key="", environ=None):
    """Find base folder, port, listening addresses and main key; given values win over found ones."""
    environ = os.environ if environ is None else environ
    support = Path(home) / "Library" / "Application Support" / "oMLX"
    app = _json_object(support / "config.json")
    candidates = (
        base_dir,
        environ.get("OMLX_BASE_PATH", ""),
        _first_line(support / "base-path"),
        _text(app.get("base_path")),
        "~/.omlx",
    )
    base = _expand(next(value for value in candidates if value), home)
    settings_path = base / "settings.json"
    saved = _json_object(settings_path)
    server, auth = _object(saved.get("server")), _object(saved.get("auth"))
    ports = (port, environ.get("OMLX_PORT", ""), server.get("port"), app.get("port"), DEFAULT_PORT)
    return Install(
        base_dir=str(base),
        found=settings_path.is_file() or bool(app),
        port=next(number for number in map(_port, ports) if number),
        hosts=split_hosts(environ.get("OMLX_HOST") or server.get("host") or server.get("bind_address")),
        main_key=admin_key or environ.get("OMLX_API_KEY", "") or _text(auth.get("api_key")),
        sub_keys=[entry for entry in _list(auth.get("sub_keys")) if isinstance(entry, dict)],
    )


def split_hosts(value):
    """Listening addresses as a list; oMLX writes a name, a comma-separated list, or (older) a JSON list."""
    parts = value if isinstance(value, list) else str(value or "").split(",")
    return [part.strip() for part in parts if isinstance(part, str) and part.strip()] or ["127.0.0.1"]


def is_loopback(host):
    """True for names and addresses that never leave this machine."""
    return host in LOOPBACK_NAMES or host.startswith("127.")


def loopback_urls(hosts, port):
    """Base URLs to try from this Mac: loopback first, then an address oMLX is bound to alone.

    `0.0.0.0` and `::` are for binding, never for connecting.
    """
    names = ["127.0.0.1"]
    names += [host for host in hosts if host not in WILDCARDS and host != "localhost" and host not in names]
    if "::" in hosts and "::1" not in names:
        names.append("::1")
    return [base_url(name, port) for name in names]


def base_url(host, port):
    """The URL of a host and a port, with brackets around an IPv6 address."""
    return "http://{0}:{1}".format("[" + host + "]" if ":" in host else host, port)


def program(home, kind, environ=None):
    """The argv that starts or restarts oMLX (`kind`) the way it is installed; [] if unknown.

    Paths are absolute because a login over SSH has no Homebrew in its PATH. Homebrew comes last: its service
    exists only when the formula does, and the app's own tool also knows how to drive the app.
    """
    tools = (
        Path(home) / ".omlx" / "bin" / "omlx",
        Path("/Applications/oMLX.app/Contents/MacOS/omlx-cli"),
        Path(home) / "Applications/oMLX.app/Contents/MacOS/omlx-cli",
    )
    for tool in tools:
        if os.access(tool, os.X_OK):
            return [str(tool), kind]
    if kind == "start" and Path("/Applications/oMLX.app").is_dir() and os.access("/usr/bin/open", os.X_OK):
        return ["/usr/bin/open", "-gj", "-a", "oMLX"]
    own = (os.environ if environ is None else environ).get("HOMEBREW_PREFIX")
    for prefix in filter(None, (own, "/opt/homebrew", "/usr/local")):
        brew, formula = Path(prefix) / "bin" / "brew", Path(prefix) / "bin" / "omlx"
        if os.access(brew, os.X_OK) and formula.exists():
            return [str(brew), "services", kind, "omlx"]
    return []


def _expand(path, home):
    if path == "~" or path.startswith("~/"):
        path = path[2:]
    return Path(home) / path


def _read(path):
    try:
        with path.open("rb") as handle:
            data = handle.read(_MAX_FILE_BYTES + 1)
    except OSError:
        return ""
    return "" if len(data) > _MAX_FILE_BYTES else data.decode("utf-8", "replace")


def _first_line(path):
    lines = _read(path).strip().splitlines()
    return lines[0].strip() if lines else ""


def _json_object(path):
    try:
        return _object(json.loads(_read(path)))
    except ValueError:
        return {}


def _object(value):
    return value if isinstance(value, dict) else {}


def _list(value):
    return value if isinstance(value, list) else []


def _text(value):
    return value if isinstance(value, str) else ""


def _port(value):
    try:
        number = int(value)
    except (TypeError, ValueError):
        return 0
    return number if 0 < number < 65536 and value is not True else 0

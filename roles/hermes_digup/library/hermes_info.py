#!/usr/bin/python
"""Finds Hermes Agent, its homes and its gateways on a host. Part of the Ansible run, changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: hermes_info
short_description: Find Hermes Agent, its profiles and its gateways
description:
  - Looks for the command in the places where Hermes's own installer puts it, asks it for its version, and
    lists the home folders of the default profile and of all others.
options:
  home:
    description: The home folder of the user who runs Hermes.
    type: path
    required: true
  command:
    description: Where the hermes command is. Empty means that it is looked for.
    type: str
    default: ""
  hermes_home:
    description: The one Hermes home to use. Empty means the default one and its profiles.
    type: str
    default: ""
  profiles:
    description: The profiles to use (C(default) is the home itself). Empty means the only one there is.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Changes nothing.
    support: full
  diff_mode:
    description: Nothing to show.
    support: none
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Find Hermes
  hermes_info:
    home: /home/pi
  register: result
"""

RETURN = r"""
command: {description: The hermes command, or empty., type: str, returned: always}
version: {description: Hermes's version, or empty., type: str, returned: always}
python: {description: The Python of Hermes's own environment, or empty., type: str, returned: always}
profiles: {description: The names of all profiles found., type: list, elements: str, returned: always}
active: {description: The profile that plain commands use., type: str, returned: always}
homes:
  description: The homes to set up, each with its profile, its gateway's unit and whether that runs.
  type: list
  elements: dict
  returned: always
every_home: {description: All homes found, in the same form., type: list, elements: dict, returned: always}
undecided: {description: Whether several profiles exist and none was named., type: bool, returned: always}
system_gateway: {description: Whether a gateway is a service of the system., type: bool, returned: always}
unknown: {description: Named profiles that do not exist., type: list, elements: str, returned: always}
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

PROFILE = re.compile(r"^[a-z0-9][a-z0-9_-]{0,63}$")


def ask(argv, environment, timeout):
    """Runs a command. Returns (exit code, standard output), or (-1, "") when it does not run or end."""
    try:
        done = subprocess.run(  # noqa: S603  # commands of this host, no shell
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=timeout,
        )
    except (OSError, subprocess.TimeoutExpired):
        return -1, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")


def find_command(command, home):
    """The hermes command as an absolute path, or an empty string."""
    usual = [
        home / ".local/bin/hermes",
        Path("/usr/local/bin/hermes"),
        home / ".hermes/hermes-agent/venv/bin/hermes",
    ]
    places = [Path(command)] if command else usual
    return next((str(place) for place in places if place.is_file() and os.access(place, os.X_OK)), "")


def version_of(command, home):
    """What `hermes --version` says, or an empty string. It writes logs, so its home is thrown away."""
    with tempfile.TemporaryDirectory() as throw_away:
        environment = dict(os.environ, HOME=str(home), HERMES_HOME=throw_away)
        code, text = ask([command, "--version"], environment, 60)
    match = re.search(r"\d+\.\d+\.\d+[^\s,)]*", text) if code == 0 else None
    return match.group(0) if match else ""


def python_of(command, root):
    """The Python of Hermes's environment: beside the command itself, or in the installer's place."""
    places = [Path(command).resolve().parent / "python"] if command else []
    places.append(root / "hermes-agent/venv/bin/python")
    return next((str(place) for place in places if os.access(place, os.X_OK)), "")


def profiles_in(root):
    """Names of the profiles below a Hermes home, without the home itself."""
    folder = root / "profiles"
    if not folder.is_dir():
        return []
    return sorted(item.name for item in folder.iterdir() if PROFILE.match(item.name) and item.is_dir())


def active_profile(root):
    """The profile that a plain `hermes` uses: the sticky choice, else the default one."""
    try:
        name = (root / "active_profile").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return "default"
    return name if PROFILE.match(name) else "default"


def gateway(folder, home):
    """The user unit that names a Hermes home, which is its gateway's, as (unit or "", runs)."""
    for unit in sorted(home.glob(".config/systemd/user/hermes-gateway*.service")):
        text = unit.read_text(encoding="utf-8", errors="replace")
        if re.search("HERMES_HOME=%s/?[\"'\\s]" % re.escape(str(folder)), text + "\n"):
            return unit.name, is_active(["--user", unit.name], home)
    return "", False


def is_active(unit, home):
    """Whether systemd runs this unit."""
    environment = dict(os.environ, HOME=str(home), XDG_RUNTIME_DIR="/run/user/%d" % os.getuid())
    return ask(["systemctl", "is-active", "--quiet", *unit], environment, 20)[0] == 0


def describe(profile, root, home):
    """One home to set up."""
    folder = root if profile == "default" else root / "profiles" / profile
    unit, runs = gateway(folder, home)
    return {
        "profile": profile,
        "home": str(folder),
        "config": str(folder / "config.yaml"),
        "unit": unit,
        "runs": runs,
    }


def main():
    module = AnsibleModule(
        argument_spec={
            "home": {"type": "path", "required": True},
            "command": {"type": "str", "default": ""},
            "hermes_home": {"type": "str", "default": ""},
            "profiles": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    home, wanted = Path(module.params["home"]), module.params["profiles"]
    root = Path(module.params["hermes_home"] or home / ".hermes")
    command = find_command(module.params["command"], home)
    others = profiles_in(root)
    every = ["default", *others] if root.is_dir() or command else []
    chosen = [name for name in wanted if name in every] if wanted else every[:1]
    module.exit_json(
        changed=False,
        command=command,
        version=version_of(command, home) if command else "",
        python=python_of(command, root),
        profiles=every,
        active=active_profile(root),
        homes=[describe(name, root, home) for name in chosen],
        every_home=[describe(name, root, home) for name in every],
        undecided=bool(others) and not wanted and not module.params["hermes_home"],
        unknown=[name for name in wanted if name not in every],
        system_gateway=bool(list(Path("/etc/systemd/system").glob("hermes-gateway*.service"))),
    )


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Puts a version of the program in use, or goes back to the one before. Part of the Ansible run."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: digup_environment
short_description: Build, prove and switch to an environment of hermes-digup
description:
  - Builds an environment beside the one in use, lets its server prove itself, and only then turns the link.
  - When anything fails, the one in use stays in use. Of two runs on one home one waits for the other.
options:
  folder: {description: Where the environments are., type: path, required: true}
  current: {description: The link to the one in use., type: path, required: true}
  former: {description: The link to the one before., type: path, required: true}
  name: {description: The environment's name; it stands for all that goes into it., type: str, default: ""}
  python: {description: The Python to build it with., type: path}
  incoming:
    description: A folder with one wheel and requirements.txt. It is removed when it was used.
    type: path
  pip_args: {description: More arguments for pip., type: list, elements: str, default: []}
  tools: {description: The tools that the server must list., type: list, elements: str, default: []}
  environment: {description: Variables for the server's self test., type: dict, default: {}}
  home: {description: The home folder that the server sees., type: path, required: true}
  host: {description: What the host is called in messages., type: str, required: true}
  patience: {description: Seconds to wait for another run., type: int, default: 900}
  state:
    description: C(former) goes back to the one before.
    type: str
    choices: [present, former]
    default: present
attributes:
  check_mode:
    description: Says what would change.
    support: full
  diff_mode:
    description: Nothing to show.
    support: none
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Go back
  digup_environment:
    folder: /home/pi/.local/share/hermes-digup/venvs
    current: /home/pi/.local/share/hermes-digup/venv
    former: /home/pi/.local/share/hermes-digup/venv-former
    home: /home/pi
    host: raspberrypi
    state: former
"""

RETURN = r"""
told: {description: What was built, with time and space, or empty., type: str, returned: always}
"""

import shutil
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.digup_environments import NotBuiltError, Shelf, build, free_mb, size_mb, target


def put_in_use(shelf, given):
    """Builds what is not there, turns the link and clears away. Returns (changed, what was built)."""
    name, started, told = given["name"], time.monotonic(), ""
    with shelf.alone(given["patience"]):
        if not shelf.is_whole(name):
            build(shelf, name, given)
            shutil.rmtree(given["incoming"])
            told = "Built the program on %s in %d s. It takes %d MB; %d MB are free." % (
                given["host"],
                time.monotonic() - started,
                size_mb(shelf.path(name)),
                free_mb(shelf.folder),
            )
        switched = shelf.switch(name)
        old = shelf.others(name)
        for folder in old:
            shutil.rmtree(str(folder), ignore_errors=True)
    return bool(told or switched or old), told


def planned(shelf, given):
    """What `put_in_use` would do, for check mode."""
    name = given["name"]
    if not shelf.is_whole(name):
        return True, "Would build %s with %s." % (shelf.path(name), given["python"])
    return target(shelf.current) != shelf.path(name) or bool(shelf.others(name)), ""


def go_back(shelf, given):
    if target(shelf.former) is None:
        raise NotBuiltError("there is no former version here to go back to")
    if given["check"]:
        return True, "Would go back to the former version."
    with shelf.alone(given["patience"]):
        shelf.back()
    return True, "%s is back at the former version." % given["host"]


def main():
    path = {"type": "path"}
    module = AnsibleModule(
        argument_spec={
            "folder": dict(path, required=True),
            "current": dict(path, required=True),
            "former": dict(path, required=True),
            "name": {"type": "str", "default": ""},
            "python": path,
            "incoming": path,
            "pip_args": {"type": "list", "elements": "str", "default": []},
            "tools": {"type": "list", "elements": "str", "default": []},
            "environment": {"type": "dict", "default": {}},
            "home": dict(path, required=True),
            "host": {"type": "str", "required": True},
            "patience": {"type": "int", "default": 900},
            "state": {"type": "str", "choices": ["present", "former"], "default": "present"},
        },
        supports_check_mode=True,
    )
    given = dict(module.params, check=module.check_mode)
    shelf = Shelf(given["folder"], given["current"], given["former"])
    try:
        if given["state"] == "former":
            changed, told = go_back(shelf, given)
        else:
            changed, told = (planned if module.check_mode else put_in_use)(shelf, given)
    except NotBuiltError as error:
        serves = (
            "The version that was there before goes on working."
            if shelf.current.exists()
            else "Nothing is in use yet."
        )
        said = "%s: %s. %s %s" % (given["host"], str(error).rstrip("."), serves, error.hint)
        module.fail_json(msg=said.strip())
    module.exit_json(changed=changed, told=told)


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Removes our folders when nothing is left in them. Part of the Ansible run that takes everything away."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: digup_empty_folders
short_description: Remove folders that are empty
description:
  - Removes each folder that is there and empty, in the given order, so inner ones come first. Others stay.
options:
  paths:
    description: The folders.
    type: list
    elements: path
    required: true
attributes:
  check_mode:
    description: Says which folders would go, without those that only become empty by this run.
    support: full
  diff_mode:
    description: Nothing to show.
    support: none
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Remove our settings folder if it is empty
  digup_empty_folders:
    paths: [/home/pi/.config/hermes-digup]
"""

RETURN = r"""
removed: {description: The folders that went., type: list, elements: str, returned: always}
left: {description: The folders that hold something., type: list, elements: str, returned: always}
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule


def main():
    module = AnsibleModule(
        argument_spec={"paths": {"type": "list", "elements": "path", "required": True}},
        supports_check_mode=True,
    )
    removed, left = [], []
    for folder in map(Path, module.params["paths"]):
        if not folder.is_dir():
            continue
        if set(folder.iterdir()) - set(removed):
            left.append(folder)
            continue
        removed.append(folder)
        if not module.check_mode:
            folder.rmdir()
    module.exit_json(changed=bool(removed), removed=list(map(str, removed)), left=list(map(str, left)))


if __name__ == "__main__":
    main()

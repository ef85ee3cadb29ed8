#!/usr/bin/python
"""Installs a skill for Hermes and keeps what the agent made of it. Part of the Ansible run."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: hermes_skill
short_description: Install or remove one skill of a Hermes home
description:
  - Writes one SKILL.md. The agent may have improved the installed one; such a text is put aside before ours takes its place.
options:
  content:
    description: The text of SKILL.md. Not needed to remove it.
    type: str
    default: ""
  path:
    description: The skill's folder.
    type: path
    required: true
  kept_dir:
    description: Where a text that is not ours is put aside.
    type: path
    required: true
  state:
    description: Whether the skill shall be there.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    description: Says what would change.
    support: full
  diff_mode:
    description: Shows the text before and after.
    support: full
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Install the skill
  hermes_skill:
    path: /home/pi/.hermes/skills/productivity/digup-search
    content: "{{ lookup('ansible.builtin.file', 'SKILL.md') }}"
    kept_dir: /home/pi/.local/share/hermes-digup/kept
"""

RETURN = r"""
kept: {description: Where the agent's own text was put, or empty., type: str, returned: always}
"""

import hashlib
import os
import tempfile

from ansible.module_utils.basic import AnsibleModule

# Holds the sha256 of the text that we installed last: any other text in SKILL.md is somebody's work.
STAMP = ".installed-by-hermes-digup"


def read(path):
    """A file's text, or None when there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read()
    except FileNotFoundError:
        return None


def write(path, text):
    """Replaces a file in one step."""
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(text)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def digest(text):
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def kept_path(kept_dir, folder, text):
    """Where a text is put aside: named after its content, so that doing it twice makes one file."""
    return os.path.join(kept_dir, "%s-%s.md" % (os.path.basename(folder), digest(text)[:8]))


def put_aside(target, text):
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    write(target, text)


def install(folder, text):
    os.makedirs(folder, exist_ok=True)
    write(os.path.join(folder, "SKILL.md"), text)
    write(os.path.join(folder, STAMP), digest(text) + "\n")


def remove(folder):
    """Removes the skill, and its folder and its category's if nothing else is in them."""
    for name in ("SKILL.md", STAMP):
        if os.path.lexists(os.path.join(folder, name)):
            os.unlink(os.path.join(folder, name))
    for path in (folder, os.path.dirname(folder)):
        if os.listdir(path):
            return
        os.rmdir(path)


def main():
    module = AnsibleModule(
        argument_spec={
            "content": {"type": "str", "default": ""},
            "path": {"type": "path", "required": True},
            "kept_dir": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    folder, text = module.params["path"], module.params["content"]
    present = module.params["state"] == "present"
    there = read(os.path.join(folder, "SKILL.md"))
    stamp = (read(os.path.join(folder, STAMP)) or "").strip()
    theirs = there is not None and digest(there) != stamp and not (present and there == text)
    kept = kept_path(module.params["kept_dir"], folder, there) if theirs else ""
    changed = (there != text or stamp != digest(text)) if present else there is not None or bool(stamp)
    if changed and not module.check_mode:
        try:
            if theirs:
                put_aside(kept, there)
            if present:
                install(folder, text)
            else:
                remove(folder)
        except OSError as error:
            module.fail_json(
                msg="The skill in %s could not be changed: %s. Run this as the user who runs Hermes."
                % (folder, error.strerror)
            )
    diff = {
        "before_header": folder,
        "after_header": folder,
        "before": there or "",
        "after": text if present else "",
    }
    module.exit_json(changed=changed, kept=kept, diff=diff)


if __name__ == "__main__":
    main()

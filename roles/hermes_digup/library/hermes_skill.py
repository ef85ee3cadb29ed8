#!/usr/bin/python
"""Installs a skill for Hermes and keeps what the agent made of it. Part of the Ansible run."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: hermes_skill
short_description: Install or remove one skill of a Hermes home
description:
  - Writes one SKILL.md. The agent may have improved the installed one; such a text is put aside before ours
    takes its place.
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
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.digup_text_file import TextFile, TextFileError

# Holds the sha256 of the text that we installed last: any other text in SKILL.md is somebody's work.
STAMP = ".installed-by-hermes-digup"


def digest(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def put_aside(target, text):
    """Keeps a text. Its name comes from its content, so doing it twice makes one file."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    TextFile(target).write(text, 0o600)


def install(skill, stamp, text):
    skill.path.parent.mkdir(parents=True, exist_ok=True)
    skill.write(text, 0o644)
    stamp.write(digest(text) + "\n", 0o644)


def remove(skill, stamp):
    """Removes the skill, and its folder and its category's if nothing else is in them."""
    for file in (skill, stamp):
        if file.exists:
            file.path.unlink()
    for folder in (skill.path.parent, skill.path.parent.parent):
        if any(folder.iterdir()):
            return
        folder.rmdir()


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
    folder, text = Path(module.params["path"]), module.params["content"]
    present = module.params["state"] == "present"
    try:
        skill, stamp = TextFile(folder / "SKILL.md"), TextFile(folder / STAMP)
        ours = {stamp.text.strip()} | ({digest(text)} if present else set())
        theirs = skill.exists and digest(skill.text) not in ours
        kept = (
            Path(module.params["kept_dir"], "%s-%s.md" % (folder.name, digest(skill.text)[:8]))
            if theirs
            else None
        )
        changed = skill.exists or stamp.exists
        if present:
            changed = not skill.exists or skill.text != text or stamp.text.strip() != digest(text)
        if changed and not module.check_mode:
            if kept:
                put_aside(kept, skill.text)
            if present:
                install(skill, stamp, text)
            else:
                remove(skill, stamp)
    except TextFileError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg="The skill in %s could not be changed: %s." % (folder, error.strerror))
    diff = {"before_header": str(folder), "after_header": str(folder)}
    diff.update(before=skill.text, after=text if present else "")
    module.exit_json(changed=changed, kept=str(kept or ""), diff=diff)


if __name__ == "__main__":
    main()

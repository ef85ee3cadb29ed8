#!/usr/bin/python
"""Writes our keys into a settings file that people also edit. Part of the Ansible run."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: digup_settings_file
short_description: Manage some keys of a file of KEY=VALUE lines
description:
  - Sets and removes single keys. Comments, order, blank lines and all other keys stay as they are.
  - The file is private (0600), is replaced in one step, and no value of a secret appears in any output.
options:
  path:
    description: The file. Its folder must exist. A symbolic link is followed.
    type: path
    required: true
  values:
    description: Keys and the values they shall have. An empty value removes the key.
    type: dict
    default: {}
  secrets:
    description: The same for values that must not be shown.
    type: dict
    default: {}
  header:
    description: First line of a file that is made anew.
    type: str
    default: ""
  state:
    description: With C(absent), all keys of I(values) and I(secrets) are removed, and the file too if nothing else is in it.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    description: Says what would change.
    support: full
  diff_mode:
    description: Shows our keys only, and secrets only as hidden.
    support: full
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Tell the server where the sources are
  digup_settings_file:
    path: /home/pi/.config/hermes-digup/config.env
    values:
      DIGUP_SOURCES_DIR: /home/pi/.local/share/hermes-digup/sources
"""

RETURN = r"""
others: {description: Names of keys in the file that are not ours., type: list, elements: str, returned: always}
"""

import os
import re
import stat
import tempfile

from ansible.module_utils.basic import AnsibleModule

LINE = re.compile(r"^\s*([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$")


def parse(line):
    """(key, value) of a line, or None for comments, blanks and anything else."""
    match = LINE.match(line)
    if match is None:
        return None
    value = match.group(2).strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return match.group(1), value


def render(key, value):
    """A line that reads back as exactly this value. Nothing is escaped in this grammar, so quotes must only not be eaten."""
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    if value != value.strip() or quoted:
        mark = "'" if value[0] == '"' else '"'
        return "%s=%s%s%s" % (key, mark, value, mark)
    return "%s=%s" % (key, value)


def merge(lines, wanted):
    """Lines with the wanted values; an empty value removes the key. Only the first line of a managed key stays."""
    merged, seen = [], set()
    for line in lines:
        pair = parse(line)
        if pair is None or pair[0] not in wanted:
            merged.append(line)
            continue
        key, value = pair
        if key in seen or not wanted[key]:
            continue
        seen.add(key)
        merged.append(line if value == wanted[key] else render(key, wanted[key]))
    return merged + [render(key, value) for key, value in wanted.items() if value and key not in seen]


def shown(lines, managed, secret):
    """Our keys as a diff may show them: secrets only as present."""
    pairs = [pair for pair in map(parse, lines) if pair and pair[0] in managed]
    return "".join("%s=%s\n" % (key, "(hidden)" if key in secret else value) for key, value in pairs)


def read(path):
    """The file's lines and mode, or (None, None) when there is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read().splitlines(), stat.S_IMODE(os.fstat(handle.fileno()).st_mode)
    except FileNotFoundError:
        return None, None


def write(path, lines):
    """Replaces the file in one step. Its owner stays the same when root writes."""
    folder = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".config-")  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as handle:
            handle.write("".join(line + "\n" for line in lines))
            handle.flush()
            os.fsync(handle.fileno())
        owner = os.stat(path if os.path.exists(path) else folder)
        if os.getuid() == 0:
            os.chown(temporary, owner.st_uid, owner.st_gid)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def main():
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "values": {"type": "dict", "default": {}},
            "secrets": {"type": "dict", "default": {}, "no_log": True},
            "header": {"type": "str", "default": ""},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    path = os.path.realpath(module.params["path"])
    absent = module.params["state"] == "absent"
    secret = module.params["secrets"]
    wanted = {key: str(value) for key, value in dict(module.params["values"], **secret).items()}
    for key, value in wanted.items():
        if "\n" in value or "\r" in value:
            module.fail_json(
                msg="The value of %s has more than one line, which %s cannot hold." % (key, path)
            )
    lines, mode = read(path)
    before = lines or []
    start = before if lines is not None else [line for line in [module.params["header"]] if line]
    after = merge(start, {key: "" for key in wanted} if absent else wanted)
    gone = absent and not any(line.strip() and line != module.params["header"] for line in after)
    changed = (
        lines is not None
        if gone
        else (lines is None and not absent) or before != after or mode not in (None, 0o600)
    )
    others = sorted({pair[0] for pair in map(parse, after) if pair and pair[0] not in wanted})
    if changed and not module.check_mode:
        try:
            if gone:
                os.unlink(path)
            else:
                write(path, after)
        except OSError as error:
            module.fail_json(msg="%s could not be written: %s." % (path, error.strerror))
    hidden = set(secret)
    diff = {
        "before_header": path,
        "after_header": path,
        "before": shown(before, wanted, hidden),
        "after": "" if gone else shown(after, wanted, hidden),
    }
    if changed and diff["before"] == diff["after"] and before != after:
        diff["after"] += "# a hidden value changes\n"
    module.exit_json(changed=changed, others=others, diff=diff)


if __name__ == "__main__":
    main()

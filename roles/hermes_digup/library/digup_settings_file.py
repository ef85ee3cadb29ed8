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
  made:
    description: Keys that get a random value, which must not be shown, when they have none.
    type: list
    elements: str
    default: []
  header:
    description: First line of a file that is made anew.
    type: str
    default: ""
  state:
    description:
      - With C(absent), all keys of I(values) and I(secrets) are removed.
      - The file goes too if nothing else is in it.
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
others: {description: Names of the file's other keys., type: list, elements: str, returned: always}
"""

import re
import secrets as randomness

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.digup_text_file import TextFile, TextFileError

PRIVATE = 0o600
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
    """A line that reads back as exactly this value: outer blanks and quotes get other quotes around them."""
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    if value != value.strip() or quoted:
        mark = "'" if value[0] == '"' else '"'
        return "%s=%s%s%s" % (key, mark, value, mark)
    return "%s=%s" % (key, value)


def merge(lines, wanted):
    """Lines with the wanted values; an empty one removes the key. A managed key has one line."""
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


def difference(path, before, after, managed, secret):
    """What --diff shows: our keys only, and that a hidden value changes."""
    old, new = shown(before, managed, secret), shown(after, managed, secret)
    if before != after and old == new:
        new += "# a value that is hidden, or a line without effect, changes\n"
    return {"before_header": path, "after_header": path, "before": old, "after": new}


def shown(lines, managed, secret):
    """Our keys as a diff may show them: secrets only as present."""
    pairs = [pair for pair in map(parse, lines) if pair and pair[0] in managed]
    return "".join("%s=%s\n" % (key, "(hidden)" if key in secret else value) for key, value in pairs)


def wishes(params, found):
    """All managed keys with their values as text. With state absent every value is empty."""
    values = {key: str(value) for key, value in dict(params["values"], **params["secrets"]).items()}
    there = dict(filter(None, map(parse, found.text.splitlines())))
    for key in params["made"]:
        values[key] = values.get(key) or there.get(key) or randomness.token_urlsafe(32)
    return dict.fromkeys(values, "") if params["state"] == "absent" else values


def settle(found, wanted, header, absent):
    """(new lines, or None for no file; whether that is a change)."""
    before = found.text.splitlines()
    after = merge(before if found.exists else [line for line in [header] if line], wanted)
    if absent and not any(line.strip() and line != header for line in after):
        return None, found.exists
    if not found.exists:
        return after, not absent
    return after, after != before or found.mode != PRIVATE


def main():
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "values": {"type": "dict", "default": {}},
            "secrets": {"type": "dict", "default": {}, "no_log": True},
            "made": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "header": {"type": "str", "default": ""},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    path, secrets = module.params["path"], {*module.params["secrets"], *module.params["made"]}
    try:
        found = TextFile(path)
        wanted = wishes(module.params, found)
        for key, value in wanted.items():
            if len(value.splitlines()) > 1:
                module.fail_json(
                    msg="The value of %s has more than one line, which %s cannot hold." % (key, path)
                )
        after, changed = settle(found, wanted, module.params["header"], module.params["state"] == "absent")
        if changed and not module.check_mode:
            if after is None:
                found.path.unlink()
            else:
                found.write("".join(line + "\n" for line in after), PRIVATE)
    except TextFileError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg="%s could not be written: %s." % (path, error.strerror))
    pairs = map(parse, after or [])
    module.exit_json(
        changed=changed,
        others=sorted({pair[0] for pair in pairs if pair and pair[0] not in wanted}),
        diff=difference(path, found.text.splitlines(), after or [], wanted, secrets),
    )


if __name__ == "__main__":
    main()

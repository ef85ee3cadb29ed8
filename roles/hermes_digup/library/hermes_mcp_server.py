#!/usr/bin/python
"""Keeps one entry under mcp_servers in Hermes's config.yaml. Part of the Ansible run.

Hermes rewrites this file itself and drops comments, quotes and order when it does, so nothing here looks at
text: values are compared, only our own leaves are written, and what the user decided about our entry is kept
and reported.
"""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: hermes_mcp_server
short_description: Manage one MCP server in Hermes Agent's configuration
description:
  - Adds, corrects or removes one entry under C(mcp_servers) and leaves all else in the file as it is.
  - Needs ruamel.yaml in the Python that runs it. Without it, check mode says what would happen.
options:
  path:
    description: Hermes's config.yaml. A symbolic link is followed.
    type: path
    required: true
  name:
    description: The name of the server.
    type: str
    required: true
  entry:
    description:
      - The values that the entry shall have. Keys of the entry that are not named here are the user's.
    type: dict
    default: {}
  user_keys:
    description:
      - Keys of I(entry) that are only written with a new entry, because the user may decide otherwise later.
    type: list
    elements: str
    default: [enabled]
  auto_load:
    description: A skill that every new session shall begin with (C(skills.auto_load)). Empty means none.
    type: str
    default: ""
  managed_path:
    description: The configuration that overlays every user's.
    type: path
    default: /etc/hermes/config.yaml
  state:
    description: Whether the entry shall be there.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    description: Says what would change.
    support: full
  diff_mode:
    description: Shows the entry before and after, without the values of variables that are not ours.
    support: full
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Give Hermes the search
  hermes_mcp_server:
    path: /home/pi/.hermes/config.yaml
    name: digup
    entry:
      command: /home/pi/.local/share/hermes-digup/venv/bin/hermes-digup
      args: [serve]
"""

RETURN = r"""
notes:
  description:
    - Sentences about what the user decided, and about settings that keep Hermes from showing the tools.
  type: list
  elements: str
  returned: always
"""

import copy
import json
from pathlib import Path

from ansible.module_utils import hermes_config as config
from ansible.module_utils import hermes_notes as notes
from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.digup_text_file import TextFile, TextFileError
from ansible.module_utils.hermes_config import ConfigError, commented, plain, same

SECTION = "mcp_servers"


def correct(entry, wanted):
    """Writes each wanted leaf that differs into the entry. Returns whether one did."""
    changed = False
    for key, value in wanted.items():
        if isinstance(value, dict) and isinstance(entry.get(key), dict):
            changed = correct(entry[key], value) or changed
        elif key not in entry or not same(plain(entry[key]), value):
            entry[key] = commented(value)
            changed = True
    return changed


def add_or_correct(document, name, wanted, user_keys):
    """Makes our entry as it should be. One that is shared through an anchor is copied first."""
    servers = document.get(SECTION)
    if not servers:
        document[SECTION] = commented({name: wanted})
        return
    entry = servers.get(name)
    if not isinstance(entry, dict):
        servers[name] = commented(wanted)
        return
    own = copy.deepcopy(entry)
    if correct(own, {key: value for key, value in wanted.items() if key not in user_keys}):
        if own.anchor.value is not None:
            own.yaml_set_anchor(None)
        servers[name] = own


def load_always(document, skill):
    """Puts a skill on the list of those that every session begins with."""
    skills = document.get("skills")
    if not isinstance(skills, dict):
        document["skills"] = commented({"auto_load": [skill]})
    elif not isinstance(skills.get("auto_load"), list):
        skills["auto_load"] = commented([skill])
    elif skill not in skills["auto_load"]:
        skills["auto_load"].append(skill)


def load_no_longer(document, skill):
    """Takes a skill off that list, and the list if it is empty then."""
    skills = document.get("skills")
    listed = skills.get("auto_load") if isinstance(skills, dict) else None
    if not isinstance(listed, list) or skill not in listed:
        return
    listed.remove(skill)
    if not listed:
        del skills["auto_load"]
    if not skills:
        del document["skills"]


def remove(document, name):
    """Takes our entry away, and the section if nothing else was in it."""
    servers = document.get(SECTION)
    if isinstance(servers, dict) and name in servers:
        del servers[name]
        if not servers:
            del document[SECTION]


def rest(document, name, skill):
    """All that is not ours, as plain values."""
    values = plain(document or {})
    if skill:
        load_no_longer(values, skill)
        if isinstance(values.get("skills"), dict) and values["skills"].get("auto_load") in ([], None):
            values["skills"].pop("auto_load", None)
        if not values.get("skills"):
            values.pop("skills", None)
    servers = values.get(SECTION)
    if isinstance(servers, dict):
        servers.pop(name, None)
    if not servers:
        values.pop(SECTION, None)
    return values


def entry_of(document, name):
    """Our entry as plain values, or None."""
    servers = plain(document or {}).get(SECTION)
    entry = servers.get(name) if isinstance(servers, dict) else None
    return entry if isinstance(entry, dict) else None


def shown(entry, wanted):
    """Our entry for a diff. Values of variables and headers that are not ours may be secrets."""
    if entry is None:
        return ""
    safe = copy.deepcopy(entry)
    for key in ("env", "headers"):
        if isinstance(safe.get(key), dict):
            ours = wanted.get(key) or {}
            safe[key] = {item: value if item in ours else "(hidden)" for item, value in safe[key].items()}
    return json.dumps(safe, indent=2, sort_keys=True, default=str) + "\n"


def change(found, params):
    """(new text, document before, document after). Raises ConfigError when anything else would change."""
    name, path, skill = params["name"], params["path"], params["auto_load"]
    before, document = config.load(found.text, path), config.load(found.text, path)
    if document is not None and not isinstance(document.get(SECTION), (dict, type(None))):
        raise ConfigError("%s in %s is not a mapping. Mend it, then run this again." % (SECTION, path))
    if params["state"] == "present":
        document = commented({}) if document is None else document
        add_or_correct(document, name, params["entry"], params["user_keys"])
        if skill:
            load_always(document, skill)
    elif document is not None:
        remove(document, name)
        load_no_longer(document, skill)
    if same(plain(before or {}), plain(document or {})):
        return found.text, before, before
    text = config.render(document, found.text)
    after = config.load(text, path)
    if not same(plain(document), plain(after or {})) or not same(
        rest(before, name, skill), rest(after, name, skill)
    ):
        raise ConfigError(
            "%s in %s cannot be changed without touching other settings. Change it by hand." % (name, path)
        )
    return text, before, after


def put(found, text, path):
    """Writes the new text; a file that held nothing but our entry goes."""
    if text or Path(path).is_symlink():
        found.write(text)
    else:
        found.path.unlink()


def pinned(path, name, wanted):
    """What a managed layer fixes of our entry. One that cannot be read is not ours to judge."""
    try:
        entry = entry_of(config.load(TextFile(path).text, path), name)
    except (ConfigError, TextFileError):
        return []
    return notes.overruled(path, name, entry or {}, wanted)


def without_ruamel(module, found):
    """What can be said when nothing can be parsed: only whether there is anything to do at all."""
    name, path = module.params["name"], module.params["path"]
    absent = module.params["state"] == "absent"
    if absent and name not in found.text:
        module.exit_json(changed=False, notes=[])
    if module.check_mode:
        said = "Would %s %s in %s." % ("remove" if absent else "add", name, path)
        module.exit_json(changed=True, notes=[said])
    module.fail_json(msg=missing_required_lib("ruamel.yaml", reason="to change Hermes's settings safely"))


def run(module):
    """Reads, changes and writes. Returns what the module returns."""
    params = module.params
    name, path, wanted = params["name"], params["path"], params["entry"]
    found = TextFile(path)
    if not config.HAVE_RUAMEL:
        without_ruamel(module, found)
    text, before, after = change(found, params)
    changed = text != found.text
    if changed and not module.check_mode:
        put(found, text, path)
    said = []
    if params["state"] == "present":
        said = notes.decided(entry_of(after, name), name) + notes.hidden(plain(after), name)
        said += pinned(params["managed_path"], name, wanted)
    old, new = shown(entry_of(before, name), wanted), shown(entry_of(after, name), wanted)
    diff = {"before_header": path, "after_header": path, "before": old, "after": new}
    return {"changed": changed, "notes": said, "diff": diff}


def main():
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "name": {"type": "str", "required": True},
            "entry": {"type": "dict", "default": {}},
            "user_keys": {"type": "list", "elements": "str", "default": ["enabled"], "no_log": False},
            "auto_load": {"type": "str", "default": ""},
            "managed_path": {"type": "path", "default": "/etc/hermes/config.yaml"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    try:
        module.exit_json(**run(module))
    except (ConfigError, TextFileError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        reason = "%s could not be written: %s." % (module.params["path"], error.strerror)
        module.fail_json(msg=reason + " Run this as the user who runs Hermes.")


if __name__ == "__main__":
    main()

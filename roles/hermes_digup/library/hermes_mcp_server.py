#!/usr/bin/python
"""Keeps one entry under mcp_servers in Hermes's config.yaml. Part of the Ansible run.

Hermes rewrites this file itself and drops comments, quotes and order when it does, so nothing here looks at text:
values are compared, only our own leaves are written, and what the user decided about our entry is kept and reported.
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
    description: The values that the entry shall have. Keys of the entry that are not named here are the user's.
    type: dict
    default: {}
  user_keys:
    description: Keys of I(entry) that are only written with a new entry, because the user may decide otherwise later.
    type: list
    elements: str
    default: [enabled]
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
  description: Sentences about what the user decided, and about settings that keep Hermes from showing the tools.
  type: list
  elements: str
  returned: always
"""

import copy
import json

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.hermes_config import (
    HAVE_RUAMEL,
    ConfigError,
    TextFile,
    commented,
    dump,
    load,
    plain,
    same,
)

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
    """The document with our entry as it should be. An entry that shares its anchor with another is taken apart first."""
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


def remove(document, name):
    """The document without our entry, and without the section if nothing else was in it."""
    servers = document.get(SECTION)
    if isinstance(servers, dict) and name in servers:
        del servers[name]
        if not servers:
            del document[SECTION]


def rest(document, name):
    """All that is not ours, as plain values."""
    values = plain(document or {})
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


def decisions(entry, name):
    """What the user decided about our entry, one sentence each."""
    said = []
    if entry.get("enabled") is False:
        said.append("%s is switched off (enabled: false) and was left so." % name)
    if entry.get("url"):
        said.append("%s has a url, which Hermes prefers to the command; it was left there." % name)
    tools = entry.get("tools") if isinstance(entry.get("tools"), dict) else {}
    for key in ("include", "exclude"):
        if tools.get(key):
            names = tools[key] if isinstance(tools[key], list) else [tools[key]]
            said.append("%s keeps its list tools.%s: %s." % (name, key, ", ".join(map(str, names))))
    return said


def hidden(values, name):
    """Settings of the user that keep our tools from being shown, one sentence each. They are never changed here."""
    said = []
    servers = values.get(SECTION) if isinstance(values.get(SECTION), dict) else {}
    others = {
        key
        for key, entry in servers.items()
        if key != name and not (isinstance(entry, dict) and entry.get("enabled") is False)
    }
    platforms = values.get("platform_toolsets") if isinstance(values.get("platform_toolsets"), dict) else {}
    for platform, names in platforms.items():
        names = [str(item) for item in names] if isinstance(names, list) else []
        if "no_mcp" in names:
            said.append("platform_toolsets.%s says no_mcp, so no MCP server is shown there." % platform)
        elif others.intersection(names) and name not in names:
            said.append(
                "platform_toolsets.%s lists other MCP servers and not %s, so it is hidden there until you add it."
                % (platform, name)
            )
    agent = values.get("agent") if isinstance(values.get("agent"), dict) else {}
    disabled = agent.get("disabled_toolsets") if isinstance(agent.get("disabled_toolsets"), list) else []
    for toolset in (name, "mcp-%s" % name):
        if toolset in disabled:
            said.append("agent.disabled_toolsets lists %s, so its tools are not shown." % toolset)
    return said


def pinned(path, name, wanted):
    """Leaves of our entry that the managed layer fixes to something else, as a sentence. An unreadable layer is not ours to judge."""
    try:
        entry = entry_of(load(TextFile(path).text, path), name)
    except ConfigError:
        return []
    fixed = sorted(
        key for key, value in (entry or {}).items() if key in wanted and not same(value, wanted[key])
    )
    return ["%s fixes %s of %s and wins over this entry." % (path, ", ".join(fixed), name)] if fixed else []


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


def new_text(before, document):
    """The file's new text. Comments of a file without any setting are kept above it."""
    if not document:
        return before if load(before, "") is None else comments_of(before)
    if load(before, "") is None and before.strip():
        return before.rstrip("\n") + "\n\n" + dump(document, before)
    return dump(document, before)


def comments_of(text):
    """What is left of a file when its last setting goes."""
    return "".join(line + "\n" for line in text.splitlines() if line.startswith("#"))


def change(path, params):
    """(file, its new text, document before, document after). Raises ConfigError when the change would touch anything else."""
    name, wanted = params["name"], params["entry"]
    found = TextFile(path)
    before = load(found.text, path)
    document = load(found.text, path)
    if document is not None and not isinstance(document.get(SECTION), (dict, type(None))):
        raise ConfigError("%s in %s is not a mapping. Mend it, then run this again." % (SECTION, path))
    if params["state"] == "present":
        document = commented({}) if document is None else document
        add_or_correct(document, name, wanted, params["user_keys"])
    elif document is not None:
        remove(document, name)
    if same(plain(before or {}), plain(document or {})):
        return found, found.text, before, before
    text = new_text(found.text, document)
    after = load(text, path)
    if not same(rest(before, name), rest(after, name)) or not same(plain(document or {}), plain(after or {})):
        raise ConfigError(
            "%s in %s cannot be changed without touching other settings. Change it by hand." % (name, path)
        )
    return found, text, before, after


def without_ruamel(module):
    """What can be said when nothing can be parsed: only whether there is anything to do at all."""
    path, name = module.params["path"], module.params["name"]
    try:
        mentioned = name in TextFile(path).text
    except ConfigError as error:
        module.fail_json(msg=str(error))
    if module.params["state"] == "absent" and not mentioned:
        module.exit_json(changed=False, notes=[])
    if module.check_mode:
        verb = "add or correct" if module.params["state"] == "present" else "remove"
        module.exit_json(changed=True, notes=["Would %s %s in %s." % (verb, name, path)])
    module.fail_json(
        msg=missing_required_lib("ruamel.yaml", reason="to change Hermes's configuration safely")
    )


def main():
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "name": {"type": "str", "required": True},
            "entry": {"type": "dict", "default": {}},
            "user_keys": {"type": "list", "elements": "str", "default": ["enabled"], "no_log": False},
            "managed_path": {"type": "path", "default": "/etc/hermes/config.yaml"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    if not HAVE_RUAMEL:
        without_ruamel(module)
    path, name, wanted = module.params["path"], module.params["name"], module.params["entry"]
    present = module.params["state"] == "present"
    try:
        found, text, before, after = change(path, module.params)
        changed = text != found.text
        if changed and not module.check_mode:
            if text or not found.exists or path != found.path:
                found.write(text)
            else:
                found.remove()
        notes = pinned(module.params["managed_path"], name, wanted) if present else []
    except ConfigError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(
            msg="%s could not be written: %s. Run this as the user who runs Hermes." % (path, error.strerror)
        )
    if present:
        notes = decisions(entry_of(after, name) or {}, name) + hidden(plain(after), name) + notes
    diff = {
        "before_header": path,
        "after_header": path,
        "before": shown(entry_of(before, name), wanted),
        "after": shown(entry_of(after, name), wanted),
    }
    module.exit_json(changed=changed, notes=notes, diff=diff)


if __name__ == "__main__":
    main()

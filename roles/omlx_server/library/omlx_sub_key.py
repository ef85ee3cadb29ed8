#!/usr/bin/python
"""The key with which agents ask for a question's vector: made here, handed on by delegation, deleted here."""

from __future__ import annotations

DOCUMENTATION = r"""
module: omlx_sub_key
short_description: Find, make, rotate or delete our sub key in oMLX
description:
  - oMLX knows sub keys by value and does not keep their names unique; a key of ours is one with our O(name).
  - The key is returned, so tasks that use this module need C(no_log).
options:
  host: {description: Inventory name of this host; sentences begin with it., type: str, required: true}
  home: {description: Home folder of the user who runs oMLX., type: str, required: true}
  base_dir: {description: oMLX's base folder; found if empty., type: str, default: ""}
  port: {description: oMLX's port; found if 0., type: int, default: 0}
  admin_key: {description: oMLX's main key; read from its settings if empty., type: str, default: ""}
  name: {description: Name of our key., type: str, default: hermes-digup}
  keep: {description: "With V(present): delete every key of our name but this one.", type: str, default: ""}
  state:
    description:
      - V(present) reuses our key or makes one from 32 random bytes.
      - V(rotated) makes a second one next to it; the older one goes with V(present) and O(keep).
      - V(absent) deletes every key of our name. Where there is none it needs no running oMLX.
    type: str
    choices: [present, rotated, absent]
    default: present
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Ask the model server for its key
  delegate_to: mac-mini
  omlx_sub_key:
    host: mac-mini
    home: /Users/me
  register: issued
  no_log: true
"""

RETURN = r"""
key:
  description: Our key. Empty when it is absent, when check mode only would make it, and with O(keep).
  type: str
  returned: always
count: {description: How many keys bear our name afterwards., type: int, returned: always}
"""

import secrets

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.omlx_client import CONNECTION_ARGUMENTS, OmlxError, connect, said
from ansible.module_utils.omlx_install import discover

_SUB_KEYS = "/admin/api/sub-keys"


def main():
    module = AnsibleModule(
        argument_spec={
            **CONNECTION_ARGUMENTS,
            "name": {"type": "str", "default": "hermes-digup"},
            "keep": {"type": "str", "default": "", "no_log": True},
            "state": {"type": "str", "choices": ["present", "rotated", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    try:
        result = {"present": present, "rotated": rotated, "absent": absent}[module.params["state"]](module)
    except OmlxError as error:
        module.fail_json(msg=said(module, error))
    module.exit_json(**result)


def present(module):
    """Reuse the first key of our name, or make one; with `keep`, delete the others."""
    params = module.params
    client = connect(params)
    keys = [entry["key"] for entry in client.sub_keys(params["name"])]
    if not keys:
        return answer(module, keys, [make(module, client)])
    if not params["keep"]:
        if len(keys) > 1:
            sentence = "oMLX has {0} sub keys named {1}; the oldest is used. Run playbooks/rotate_key.yml"
            module.warn(said(module, sentence.format(len(keys), params["name"])))
        return answer(module, keys, keys)
    if params["keep"] not in keys:
        raise OmlxError(
            "oMLX no longer has the sub key {0} that was to be kept; nothing was deleted. Run the playbook "
            "again".format(params["name"])
        )
    for key in keys:
        if key != params["keep"]:
            delete(module, client, key)
    # The key is not returned: Ansible would mask it, because it came in as a secret argument.
    return {**answer(module, keys, [params["keep"]]), "key": ""}


def rotated(module):
    """Make a second key, or take the newer one of a rotation that was interrupted."""
    client = connect(module.params)
    keys = [entry["key"] for entry in client.sub_keys(module.params["name"])]
    if len(keys) > 1:
        return answer(module, keys, keys, use=-1)
    return answer(module, keys, [*keys, make(module, client)], use=-1)


def absent(module):
    """Delete every key of our name. The settings file is asked first, so that an absent oMLX stops nobody."""
    params = module.params
    install = discover(params["home"], params["base_dir"], params["port"], params["admin_key"])
    if not any(entry.get("name") == params["name"] for entry in install.sub_keys):
        return answer(module, [], [])
    client = connect(params)
    keys = [entry["key"] for entry in client.sub_keys(params["name"])]
    for key in keys:
        delete(module, client, key)
    return answer(module, keys, [])


def make(module, client):
    """Create a key and return it; in check mode none is made and "" is returned."""
    if module.check_mode:
        return ""
    key = secrets.token_hex(32)
    client.call("POST", _SUB_KEYS, {"key": key, "name": module.params["name"]}, what="create a sub key")
    if key not in [entry["key"] for entry in client.sub_keys(module.params["name"])]:
        raise OmlxError(
            "oMLX at {0} said it made a sub key but does not list it. Look at {0}/admin, then run this "
            "again".format(client.base_url)
        )
    return key


def delete(module, client, key):
    """Delete one key; one that is gone already counts as deleted."""
    if module.check_mode:
        return
    result = client.ask("DELETE", _SUB_KEYS, {"key": key})
    if result.status not in (200, 404):
        raise OmlxError(
            "oMLX at {0} did not delete the sub key {1}: HTTP {2} {3}. Delete it in {0}/admin".format(
                client.base_url, module.params["name"], result.status, client.redacted(result.detail, key)
            )
        )


def answer(module, before, after, use=0):
    """The module's result: counts in the diff, never a key."""
    changed = before != after
    result = {"changed": changed, "key": after[use] if after else "", "count": len(after)}
    if changed:
        name = module.params["name"]
        result["diff"] = {"before": {name: len(before)}, "after": {name: len(after)}}
    return result


if __name__ == "__main__":
    main()

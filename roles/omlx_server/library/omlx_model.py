#!/usr/bin/python
"""The model that makes a question's vector is in oMLX, of the right type, pinned and in memory."""

from __future__ import annotations

DOCUMENTATION = r"""
module: omlx_model
short_description: Keep an EmbeddingGemma 2 in oMLX, pinned and loaded
description:
  - Uses an EmbeddingGemma 2 that is there already, or downloads one with oMLX's own downloader.
  - Pins and loads it, and checks that oMLX serves it as an embedding model.
  - Other models are never unloaded, unpinned or changed. What we changed is noted in O(note), so that
    O(state=absent) takes back exactly that.
options:
  host: {description: Inventory name of this host; sentences begin with it., type: str, required: true}
  home: {description: Home folder of the user who runs oMLX., type: str, required: true}
  base_dir: {description: oMLX's base folder; found if empty., type: str, default: ""}
  port: {description: oMLX's port; found if 0., type: int, default: 0}
  admin_key: {description: oMLX's main key; read from its settings if empty., type: str, default: ""}
  note: {description: File on this Mac in which we note what we changed., type: str, required: true}
  repo: {description: What to download if needed., type: str, default: google/embeddinggemma-2}
  model: {description: Id of the model to use if it has another name., type: str, default: ""}
  hf_token: {description: Token for the hub., type: str, default: ""}
  task_id: {description: Download that an earlier call of this run has started., type: str, default: ""}
  wait_seconds: {description: How long to follow a download before answering., type: int, default: 0}
  load_seconds: {description: How long loading may take., type: int, default: 600}
  state:
    description: V(found) only looks; V(absent) unpins what we pinned and leaves the model.
    type: str
    choices: [present, found, absent]
    default: present
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Use or download the model
  omlx_model:
    host: mac-mini
    home: /Users/me
    note: /Users/me/.config/hermes-digup/model-server.json
"""

RETURN = r"""
model: {description: Id of the model ("" if there is none)., type: str, returned: always}
downloading: {description: Whether a download is still running., type: bool, returned: always}
task_id: {description: The download's id., type: str, returned: when downloading}
progress: {description: The download's progress for a person., type: str, returned: always}
loaded: {description: Whether the model is in memory., type: bool, returned: always}
pinned: {description: Whether it stays there., type: bool, returned: always}
"""

import json
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.omlx_client import CONNECTION_ARGUMENTS, OmlxError, connect, said
from ansible.module_utils.omlx_download import Download
from ansible.module_utils.omlx_install import discover
from ansible.module_utils.omlx_serving import (
    SERVED_TYPE,
    change,
    check_kind,
    check_type,
    check_version,
    choose,
    load_model,
    quantised,
)

_RESTART_SECONDS = 120  # that oMLX may be away while it downloads


def main():
    module = AnsibleModule(
        argument_spec={
            **CONNECTION_ARGUMENTS,
            "note": {"type": "str", "required": True},
            "repo": {"type": "str", "default": "google/embeddinggemma-2"},
            "model": {"type": "str", "default": ""},
            "hf_token": {"type": "str", "default": "", "no_log": True},
            "task_id": {"type": "str", "default": ""},
            "wait_seconds": {"type": "int", "default": 0},
            "load_seconds": {"type": "int", "default": 600},
            "state": {"type": "str", "choices": ["present", "found", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    try:
        result = absent(module) if module.params["state"] == "absent" else present(module)
    except OmlxError as error:
        module.fail_json(msg=said(module, error))
    module.exit_json(**result)


def present(module):
    """Have the model there, of the right type, pinned and loaded. Returns the module's result."""
    params = module.params
    client = connect(params, _RESTART_SECONDS if params["task_id"] else 0)
    found = choose(client.models(), params["repo"], params["model"])
    if found is not None:
        check_kind(client, found)
    result = {
        "changed": False,
        "model": found["id"] if found else "",
        "downloading": False,
        "progress": "complete" if found and params["task_id"] else "",
        "loaded": bool(found and found.get("loaded")),
        "pinned": bool(found and found.get("pinned")),
    }
    if params["state"] == "found":
        return result
    if found is None and params["model"]:
        raise OmlxError(
            "oMLX at {0} has no model {1}. It lists: {2}. Correct omlx_server_model".format(
                client.base_url, params["model"], ", ".join(m["id"] for m in client.models()) or "none"
            )
        )
    before = describe(found)
    if found is None:
        found = fetch(module, client, result)
    if found is not None:
        serve(module, client, found, result)
    result["diff"] = {"before": before, "after": {**before, **wanted_state(result)}}
    if not result["changed"]:
        del result["diff"]
    return result


def describe(found):
    """What we manage of a model."""
    found = found or {}
    return {
        "present": bool(found),
        "model_type": found.get("model_type"),
        "pinned": bool(found.get("pinned")),
        "loaded": bool(found.get("loaded")),
    }


def wanted_state(result):
    """The same, as it is or will be afterwards."""
    return {"present": True, "model_type": SERVED_TYPE, "pinned": True, "loaded": not result["downloading"]}


def fetch(module, client, result):
    """Download. Returns the model once it is there, None while it is on its way (in check mode: would be)."""
    params = module.params
    repo = params["repo"]
    result["changed"] = not params["task_id"]
    check_version(client)
    if module.check_mode:
        result.update(
            model=repo.rpartition("/")[2], progress="would download {0} (about 1.5 GB)".format(repo)
        )
        return None

    def listed():
        return choose(client.models(), repo, "")

    download = Download(client, repo, params["hf_token"], listed)
    progress = download.follow(params["task_id"], params["wait_seconds"])
    if progress.done:
        found = listed()
        result.update(model=found["id"], progress="complete")
        return found
    result.update(downloading=True, task_id=progress.task_id, progress=progress.text)
    return None


def serve(module, client, found, result):
    """Type, pin and memory, in that order: what can't be served is not pinned."""
    if quantised(found):
        sentence = (
            "{0} is a quantised copy: its vectors differ a little from DigUp's, so searches rank a little "
            "worse. The original is google/embeddinggemma-2"
        )
        module.warn(said(module, sentence.format(found["id"])))
    override = found.get("model_type") != SERVED_TYPE
    pin = not found.get("pinned")
    load = not found.get("loaded") or override
    result["changed"] = result["changed"] or override or pin or load
    if module.check_mode or not (override or pin or load):
        return
    model_id = found["id"]
    if override:
        change(client, model_id, {"model_type_override": SERVED_TYPE})
    try:
        missing = load_model(client, model_id, module.params["load_seconds"])
        if missing:
            module.warn(said(module, "oMLX could not load again: {0}".format(", ".join(missing))))
        check_type(client, model_id)
    except OmlxError:
        if override:
            former = (found.get("settings") or {}).get("model_type_override")
            change(client, model_id, {"model_type_override": former or ""})
        raise
    if pin:
        change(client, model_id, {"is_pinned": True})
    if pin or override:
        write_note(module, model_id, pinned=pin, override=override)
    now = client.model(model_id) or {}
    if not (now.get("pinned") and now.get("loaded")):
        raise OmlxError(
            "oMLX at {0} accepted to pin and load {1} but shows pinned={2}, loaded={3}. Look at "
            "{0}/admin".format(client.base_url, model_id, bool(now.get("pinned")), bool(now.get("loaded")))
        )
    result.update(loaded=True, pinned=True)


def absent(module):
    """Take back our pin and our type override; the model stays. With nothing of ours it needs no server."""
    noted = read_note(module)
    model_id = noted.get("model")
    result = {"changed": bool(noted), "model": model_id or "", "downloading": False, "progress": ""}
    result.update(loaded=False, pinned=False)
    if not noted:
        return result
    result["diff"] = {"before": noted, "after": {}}
    if module.check_mode:
        return result
    params = module.params
    if not discover(params["home"], params["base_dir"], params["port"], params["admin_key"]).found:
        Path(params["note"]).unlink()  # oMLX is gone, and with it what we changed
        return result
    client = connect(params)
    if client.model(model_id) is not None:
        taken_back = {}
        if noted.get("pinned"):
            taken_back["is_pinned"] = False
        if noted.get("override"):
            taken_back["model_type_override"] = ""
        if taken_back:
            change(client, model_id, taken_back)
    Path(params["note"]).unlink()
    return result


def read_note(module):
    """What we noted: {model, pinned, override}; {} if there is no (sensible) note."""
    try:
        noted = json.loads(Path(module.params["note"]).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) and isinstance(noted.get("model"), str) else {}


def write_note(module, model_id, **changes):
    """Note in one step what we changed, together with what was noted about the same model before."""
    path = Path(module.params["note"])
    noted = read_note(module)
    if noted.get("model") != model_id:
        noted = {"model": model_id}
    noted.update((name, True) for name, done in changes.items() if done)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(noted, indent=1) + "\n", encoding="utf-8")
    temporary.chmod(0o600)
    temporary.replace(path)


if __name__ == "__main__":
    main()

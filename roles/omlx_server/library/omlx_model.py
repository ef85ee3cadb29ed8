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
  home: {description: Home folder of the user who runs oMLX., type: str, required: true}
  base_dir: {description: oMLX's base folder; found if empty., type: str, default: ""}
  port: {description: oMLX's port; found if 0., type: int, default: 0}
  admin_key: {description: oMLX's main key; read from its settings if empty., type: str, default: ""}
  note: {description: File on this Mac in which we note what we changed., type: str, required: true}
  repo: {description: Repository to download if no EmbeddingGemma 2 is there., type: str, default: google/embeddinggemma-2}
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
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.omlx_client import CONNECTION_ARGUMENTS, OmlxError, connect, wait_for
from ansible.module_utils.omlx_download import follow
from ansible.module_utils.omlx_restart import loaded_models, reload_models

CONFIG_TYPE = "embedding_gemma2"
SERVED_TYPE = "embedding"
_QUANTISED = re.compile(
    r"(?i)(?:^|[-_.])(?:\d+ ?bits?|q\d\w*|int\d|(?:mx|nv)?fp[48]|dwq|awq|gptq)(?:$|[-_.])"
)
_REMEMBERED = "previous load failure"


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
        module.fail_json(msg=str(error))
    module.exit_json(**result)


def choose(models, repo, wanted):
    """The model to use among the server's, or None.

    A wanted id must be there. Else an EmbeddingGemma 2, the repository's own name first, then unquantised ones; a
    server too old to know the type lists it under the repository's name with another type.
    """
    if wanted:
        return next((m for m in models if wanted in (m["id"], m.get("display_name"))), None)
    name = repo.rpartition("/")[2]
    candidates = [
        m
        for m in models
        if m.get("config_model_type") == CONFIG_TYPE
        or (m["id"] == name and m.get("source_repo_id") in (None, "", repo))
    ]
    return min(candidates, key=lambda m: (m["id"] != name, quantised(m), m["id"]), default=None)


def quantised(model):
    """True if the name says that the weights were squeezed: its vectors differ from DigUp's."""
    return any(
        _QUANTISED.search(str(model.get(field) or "")) for field in ("id", "display_name", "source_repo_id")
    )


def present(module):
    """Have the model there, of the right type, pinned and loaded. Returns the module's result."""
    params = module.params
    client = connect(params)
    found = choose(client.models(), params["repo"], params["model"])
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
    """Download. Returns the model once it is there, None while it is on its way (or would be, in check mode)."""
    params = module.params
    repo = params["repo"]
    result["changed"] = not params["task_id"]
    if module.check_mode:
        result.update(
            model=repo.rpartition("/")[2], progress="would download {0} (about 1.5 GB)".format(repo)
        )
        return None

    def listed():
        return choose(client.models(), repo, "")

    progress = follow(client, repo, listed, params["hf_token"], params["task_id"], params["wait_seconds"])
    if progress.done:
        found = listed()
        result.update(model=found["id"], progress="complete")
        return found
    result.update(downloading=True, task_id=progress.task_id, progress=progress.text)
    return None


def serve(module, client, found, result):
    """Type, pin and memory, in that order: what can't be served is not pinned."""
    if quantised(found):
        module.warn(
            "{0} is a quantised copy: its vectors differ a little from DigUp's, so searches rank a little worse. The "
            "original is google/embeddinggemma-2".format(found["id"])
        )
    override = found.get("model_type") != SERVED_TYPE
    pin = not found.get("pinned")
    load = not found.get("loaded") or override
    result["changed"] = result["changed"] or override or pin or load
    if module.check_mode or not (override or pin or load):
        return
    model_id = found["id"]
    noted = read_note(module)
    if override:
        change(client, model_id, {"model_type_override": SERVED_TYPE})
    try:
        load_model(module, client, model_id)
        check_type(client, model_id)
    except OmlxError:
        if override:
            change(client, model_id, {"model_type_override": ""})
        raise
    if pin:
        change(client, model_id, {"is_pinned": True})
    if pin or override:
        mine = {
            "pinned": pin or noted.get("pinned", False),
            "override": override or noted.get("override", False),
        }
        write_note(
            module,
            {"model": model_id, **mine}
            if noted.get("model") in (None, model_id)
            else {"model": model_id, "pinned": pin, "override": override},
        )
    now = client.model(model_id) or {}
    if not (now.get("pinned") and now.get("loaded")):
        raise OmlxError(
            "oMLX at {0} accepted to pin and load {1} but shows pinned={2}, loaded={3}. Look at {0}/admin".format(
                client.base_url, model_id, bool(now.get("pinned")), bool(now.get("loaded"))
            )
        )
    result.update(loaded=True, pinned=True)


def change(client, model_id, settings):
    """Change documented settings of one model."""
    client.call(
        "PUT",
        "/admin/api/models/{0}/settings".format(model_id),
        settings,
        what="change {0}'s settings".format(model_id),
    )


def load_model(module, client, model_id):
    """Load it, joining a load that already runs, and forgetting one earlier failure.

    Raises: OmlxError saying that this oMLX can't serve it, or that memory is short.
    """
    seconds = module.params["load_seconds"]
    answer = ask_to_load(client, model_id, seconds)
    if _REMEMBERED in answer.detail:
        # The one way to make oMLX forget a failure unloads every model, so what others use is loaded again.
        wanted = loaded_models(client)
        client.call("POST", "/admin/api/reload", timeout=seconds, what="look for its models anew")
        missing = reload_models(client, wanted)
        if missing:
            module.warn("oMLX could not load again: {0}".format(", ".join(missing)))
        answer = ask_to_load(client, model_id, seconds)
    if answer.status == 409:
        loaded = wait_for(lambda: (client.model(model_id) or {}).get("loaded"), seconds, every=2)
        if loaded:
            return
    if answer.status not in (200, 202):
        raise OmlxError(load_failure(client, model_id, answer))


def ask_to_load(client, model_id, seconds):
    """One request to load; it blocks while the weights are read."""
    return client.ask("POST", "/admin/api/models/{0}/load".format(model_id), timeout=seconds)


def load_failure(client, model_id, answer):
    """One sentence for a model that can't be loaded."""
    reason = client.redacted(answer.detail or "no reason given")
    low = reason.lower()
    if "not supported" in low or "unsupported" in low or "model type" in low:
        return (
            "oMLX {0} cannot serve {1} ({2}). Update oMLX to a version that knows EmbeddingGemma 2, then run this "
            "again".format(client.version() or "(version unknown)", model_id, reason)
        )
    if answer.status == 507 or "memory" in low:
        return (
            "oMLX has no room in memory for {0} ({1}). Unload a model in {2}/admin or raise its memory limit, then "
            "run this again".format(model_id, reason, client.base_url)
        )
    return "oMLX could not load {0}: HTTP {1} {2}. Look at {3}/admin".format(
        model_id, answer.status, reason, client.base_url
    )


def check_type(client, model_id):
    """Raises: OmlxError unless the server serves it as an embedding model."""
    now = client.model(model_id) or {}
    if now.get("model_type") != SERVED_TYPE:
        raise OmlxError(
            "oMLX {0} serves {1} as {2}, not as an embedding model. Update oMLX to a version that knows "
            "EmbeddingGemma 2, then run this again".format(
                client.version() or "(version unknown)", model_id, now.get("model_type") or "unknown"
            )
        )


def absent(module):
    """Take back our pin and our type override; the model stays. Needs no server when there is nothing of ours."""
    noted = read_note(module)
    model_id = noted.get("model")
    result = {"changed": bool(noted), "model": model_id or "", "downloading": False, "progress": ""}
    result.update(loaded=False, pinned=False)
    if not noted:
        return result
    result["diff"] = {"before": noted, "after": {}}
    if module.check_mode:
        return result
    client = connect(module.params)
    if client.model(model_id) is not None:
        taken_back = {}
        if noted.get("pinned"):
            taken_back["is_pinned"] = False
        if noted.get("override"):
            taken_back["model_type_override"] = ""
        if taken_back:
            change(client, model_id, taken_back)
    os.unlink(module.params["note"])
    return result


def read_note(module):
    """What we noted: {model, pinned, override}; {} if there is no (sensible) note."""
    try:
        with open(module.params["note"], encoding="utf-8") as handle:
            noted = json.load(handle)
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) and isinstance(noted.get("model"), str) else {}


def write_note(module, noted):
    """Write the note in one step."""
    path = module.params["note"]
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = path + ".new"
    with open(temporary, "w", encoding="utf-8") as handle:
        json.dump(noted, handle, indent=1)
        handle.write("\n")
    os.chmod(temporary, 0o600)
    os.replace(temporary, path)


if __name__ == "__main__":
    main()

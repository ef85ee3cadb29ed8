"""Models, downloads and what everybody may ask of the oMLX double."""

from __future__ import annotations

import time
from typing import Any

from tests.doubles.omlx_call import Answer, Call
from tests.doubles.omlx_downloads import ACTIVE, Refused, Task
from tests.doubles.omlx_state import Model, State

TYPES = ("llm", "vlm", "embedding", "reranker", "audio_stt", "audio_tts", "audio_sts")
MODEL_SETTINGS = (
    "is_pinned",
    "is_default",
    "model_type_override",
    "model_alias",
    "ttl_seconds",
    "trust_remote_code",
)


def _shown(state: State, model: Model) -> dict[str, Any]:
    kind, saved = state.type_of(model.id), state.model_settings.get(model.id)
    shown = {
        "id": model.id,
        "model_path": str(model.path),
        "display_name": model.repo,
        "loaded": model.id in state.loaded,
        "is_loading": model.id in state.loading,
        "estimated_size": model.size,
        "estimated_size_formatted": f"{model.size / 1e9:.2f} GB",
        "actual_size": model.size if model.id in state.loaded else None,
        "pinned": state.pinned(model.id),
        "is_default": model.id == next(iter(state.models)),
        "engine_type": "embedding" if kind == "embedding" else "batched",
        "model_type": kind,
        "config_model_type": model.config_type,
        "source_type": "local",
        "source_repo_id": model.repo,
        "last_access": None,
    }
    return shown | ({"settings": dict(saved)} if saved else {})


def list_models(call: Call) -> Answer:
    return 200, {"models": [_shown(call.state, model) for model in call.state.models.values()]}


def _known(call: Call) -> str:
    id = call.values[0]
    if id not in call.state.models:
        raise Refused(404, f"Model not found: {id}")
    return id


def save_model(call: Call) -> Answer:
    state, body, id = call.state, call.body, _known(call)
    unknown = [name for name in body if name not in MODEL_SETTINGS]
    if unknown and call.double.personality.strict:
        raise Refused(422, [{"type": "extra_forbidden", "loc": ["body", unknown[0]], "msg": "Extra inputs"}])
    override = body.get("model_type_override")
    if override and override not in TYPES:
        raise Refused(400, f"Invalid model_type_override: {override}")
    saved = state.model_settings.setdefault(id, {})
    for name in filter(body.__contains__, MODEL_SETTINGS):
        if name == "is_pinned" and body[name] is None:
            continue
        saved[name] = body[name] or (False if name == "is_pinned" else None)
        if saved[name] is None:
            del saved[name]
    unloaded = "model_type_override" in body and id in state.loaded
    if unloaded and not state.pinned(id):
        state.loaded.discard(id)
    state.save()
    shown = _shown(state, state.models[id])
    return 200, {
        "success": True,
        "model_id": id,
        "settings": dict(saved),
        "model_type": shown["model_type"],
        "engine_type": shown["engine_type"],
        "requires_reload": False,
        "auto_unloaded": unloaded,
        "auto_reloaded": unloaded and state.pinned(id),
    }


def load_model(call: Call) -> Answer:
    return 200, {"status": "ok", "model_id": call.values[0], "message": call.state.load(call.values[0])}


def unload_model(call: Call) -> Answer:
    id = _known(call)
    if id in call.state.loading:
        raise Refused(409, f"Model {id} is loading")
    if call.state.unload(id):
        return 200, {"status": "ok", "model_id": id, "message": f"Unloaded {id}"}
    return 202, {"status": "unloading", "model_id": id}


def reload(call: Call) -> Answer:
    call.state.discover(unload=True)
    found, dirs = len(call.state.models), len(call.state.model_dirs)
    return 200, {"status": "ok", "message": f"Re-discovered {found} models from {dirs} directory"}


def start_download(call: Call) -> Answer:
    task = call.state.download(str(call.given("repo_id")), str(call.body.get("hf_token") or ""))
    return 200, {"success": True, "task": task.shown()}


def list_tasks(call: Call) -> Answer:
    return 200, {"tasks": [task.shown() for task in call.state.tasks]}


def _task(call: Call, states: tuple[str, ...], otherwise: Refused) -> Task:
    for task in call.state.tasks:
        if task.task_id == call.values[0] and task.status in states:
            return task
    raise otherwise


def cancel_download(call: Call) -> Answer:
    refused = Refused(404, "Task not found or not cancellable")
    task = _task(call, ACTIVE, refused)
    task.status, task.completed_at = "cancelled", time.time()
    return 200, {"success": True}


def retry_download(call: Call) -> Answer:
    task = _task(call, ("failed", "cancelled"), Refused(400, "Task not found or not retryable"))
    again = call.state.download(task.repo_id, str(call.body.get("hf_token") or ""), retry_of=task)
    return 200, {"success": True, "task": again.shown()}


def forget_task(call: Call) -> Answer:
    refused = Refused(404, "Task not found or still active")
    call.state.tasks.remove(_task(call, ("completed", "failed", "cancelled"), refused))
    return 200, {"success": True}


def health(call: Call) -> Answer:
    state = call.state
    loading = time.monotonic() - state.started < call.double.personality.loading_s
    pool = {"model_count": len(state.models), "loaded_count": len(state.loaded), "current_model_memory": 0}
    default = next(iter(state.models), None)
    shown = {"status": "loading" if loading else "healthy", "default_model": default}
    return (503 if loading else 200), {**shown, "engine_pool": pool, "mcp": None}


def status(call: Call) -> Answer:
    version = "0.4.5.dev1" if call.double.personality.old else "0.7.0"
    return 200, {"version": version, "status": "running", "models_loaded": len(call.state.loaded)}


def public_models(call: Call) -> Answer:
    settings = call.state.model_settings
    names = [settings.get(id, {}).get("model_alias") or id for id in call.state.models]
    now = int(time.time())
    data = [
        {"id": name, "object": "model", "created": now, "owned_by": "omlx", "max_model_len": 8192}
        for name in names
    ]
    return 200, {"object": "list", "data": data}


def models_status(call: Call) -> Answer:
    state = call.state
    models = [_shown(state, model) for model in state.models.values()]
    return 200, {"model_count": len(models), "loaded_count": len(state.loaded), "models": models}

"""Restarting oMLX without harm to its other users: wait for idle, restart, load what was loaded."""

from __future__ import annotations

from ansible.module_utils.omlx_client import OmlxAwayError, OmlxError, OmlxRefusedError, model_path, wait_for

ACTIVE = ("pending", "downloading")
_NOTICED_SECONDS = 15
_LOAD_SECONDS = 600


def loaded_models(client):
    """Ids of the models in memory."""
    return [model["id"] for model in client.models() if model.get("loaded")]


def reload_models(client, wanted):
    """Load again what was in memory before. Returns the ids that could not be loaded."""
    missing = []
    for model_id in wanted:
        if model_id in loaded_models(client):
            continue
        try:
            client.call("POST", model_path(model_id, "load"), timeout=_LOAD_SECONDS, what="load it")
        except OmlxError:
            missing.append(model_id)
    return missing


def wait_for_idle(client, seconds):
    """Wait until nothing is being downloaded or loaded: a restart would kill it.

    Raises: OmlxError when it is still busy after `seconds`.
    """
    busy = []

    def idle():
        busy[:] = [str(t.get("repo_id")) for t in client.tasks() if t.get("status") in ACTIVE]
        busy.extend(m["id"] for m in client.models() if m.get("is_loading"))
        return not busy

    if not wait_for(idle, seconds, every=2):
        raise OmlxError(
            "oMLX at {0} must be restarted but is still busy with {1} after {2} s. Let that finish (see "
            "{0}/admin), then run this again".format(client.base_url, ", ".join(sorted(set(busy))), seconds)
        )


def restart(client, run, command, seconds):
    """Restart through the API; where nobody supervises the server, with `command` (an argv or []).

    `run` executes an argv and raises OmlxError if it fails.
    """
    try:
        answer = client.ask("POST", "/admin/api/server/restart", timeout=30)
    except OmlxAwayError:
        answer = None  # it went down before it could answer
    if answer is not None and answer.status == 503:
        if not command:
            raise OmlxError(
                "oMLX at {0} was started by hand and cannot restart itself. Stop it and start it again, then "
                "run this again; or set omlx_server_restart_command".format(client.base_url)
            )
        run(command, "restart")
    elif answer is not None and answer.status not in (200, 202):
        raise OmlxRefusedError(
            "oMLX at {0} refused to restart: HTTP {1} {2}. Restart it by hand, then run this again".format(
                client.base_url, answer.status, client.redacted(answer.detail)
            ),
            answer.status,
            answer.detail,
        )
    # The old process still answers for a moment. Not seeing it away in that time is no fault: the proof comes
    # after.
    wait_for(lambda: client.health(timeout=2) == "away", _NOTICED_SECONDS, every=0.1)
    if not client.wait_until_up(seconds):
        raise OmlxAwayError(
            "oMLX at {0} was restarted and is not back after {1} s. Open its window or look at its logs, "
            "start it, then run this again".format(client.base_url, seconds)
        )

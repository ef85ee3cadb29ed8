"""Which address of the oMLX double does what, and who may ask."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.doubles import omlx_admin, omlx_models
from tests.doubles.omlx_call import Answer, Call
from tests.doubles.omlx_downloads import Refused

Handler = Callable[[Call], Answer]
# Method, path, guard, handler. None answers in chunks and is written out by the HTTP face.
ROUTES: tuple[tuple[str, str, str, Handler | None], ...] = (
    ("POST", "/admin/api/login", "open", omlx_admin.login),
    ("POST", "/admin/api/logout", "open", omlx_admin.logout),
    ("POST", "/admin/api/setup-api-key", "open", omlx_admin.first_key),
    ("GET", "/admin/api/global-settings", "admin", omlx_admin.read_settings),
    ("POST", "/admin/api/global-settings", "admin", omlx_admin.save_settings),
    ("GET", "/admin/api/server-info", "admin", omlx_admin.server_info),
    ("POST", "/admin/api/server/restart", "admin", omlx_admin.restart),
    ("POST", "/admin/api/sub-keys", "admin", omlx_admin.add_sub_key),
    ("DELETE", "/admin/api/sub-keys", "admin", omlx_admin.delete_sub_key),
    ("GET", "/admin/api/models", "admin", omlx_models.list_models),
    ("PUT", "/admin/api/models/{}/settings", "admin", omlx_models.save_model),
    ("POST", "/admin/api/models/{}/load", "admin-or-key", omlx_models.load_model),
    ("POST", "/admin/api/models/{}/unload", "admin", omlx_models.unload_model),
    ("POST", "/admin/api/reload", "admin", omlx_models.reload),
    ("POST", "/admin/api/hf/download", "admin", omlx_models.start_download),
    ("GET", "/admin/api/hf/tasks", "admin", omlx_models.list_tasks),
    ("POST", "/admin/api/hf/cancel/{}", "admin", omlx_models.cancel_download),
    ("POST", "/admin/api/hf/retry/{}", "admin", omlx_models.retry_download),
    ("DELETE", "/admin/api/hf/task/{}", "admin", omlx_models.forget_task),
    ("GET", "/health", "open", omlx_models.health),
    ("GET", "/api/status", "key", omlx_models.status),
    ("GET", "/v1/models", "key", omlx_models.public_models),
    ("GET", "/v1/models/status", "key", omlx_models.models_status),
    ("POST", "/v1/models/{}/load", "key", omlx_models.load_model),
    ("POST", "/v1/models/{}/unload", "key", omlx_models.unload_model),
    ("POST", "/v1/embeddings", "key", None),
)


def route(method: str, path: str) -> tuple[Handler | None, str, tuple[str, ...]]:
    """Handler, guard and the values in a path. Raises: Refused (404, 405) as the real router words it."""
    known = False
    for verb, pattern, guard, handler in ROUTES:
        match = re.fullmatch(pattern.replace("{}", r"([^/%]+)"), path)
        if match and verb == method:
            return (handler and _locked(handler)), guard, match.groups()
        known = known or match is not None
    raise Refused(405, "Method Not Allowed") if known else Refused(404, "Not Found")


def _locked(handler: Handler) -> Handler:
    def locked(call: Call) -> Answer:
        with call.state.lock:
            return handler(call)

    return locked

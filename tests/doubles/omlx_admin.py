"""Sessions, settings, restart and sub keys of the oMLX double."""

from __future__ import annotations

import ipaddress
import re
from datetime import datetime, timezone
from typing import Any

from tests.doubles.omlx_call import Answer, Call
from tests.doubles.omlx_downloads import Refused

COOKIE = "omlx_admin_session={}; HttpOnly; Max-Age={}; Path=/; SameSite=lax"
SAVED = {  # names of the flat settings body: where they are kept
    "host": ("server", "host"),
    "port": ("server", "port"),
    "log_level": ("server", "log_level"),
    "skip_api_key_verification": ("auth", "skip_api_key_verification"),
    "api_key": ("auth", "api_key"),
    "idle_timeout_seconds": ("idle_timeout", "idle_timeout_seconds"),
    "embedding_batch_size": ("scheduler", "embedding_batch_size"),
    "hf_endpoint": ("huggingface", "endpoint"),
    "hf_cache_enabled": ("huggingface", "hf_cache_enabled"),
    "model_dirs": ("model", "model_dirs"),
}


def login(call: Call) -> Answer:
    key = call.given("api_key")
    main = call.state.settings["auth"]["api_key"]
    if not main:
        raise Refused(400, "No API key configured. Please set up an API key first.")
    if key != main:
        raise Refused(401, "Invalid API key")
    age = 30 * 86400 if call.body.get("remember") else 86400
    call.headers["Set-Cookie"] = COOKIE.format(call.state.session(age), age)
    return 200, {"success": True}


def logout(call: Call) -> Answer:
    call.headers["Set-Cookie"] = COOKIE.format("", 0)
    return 200, {"success": True}


def first_key(call: Call) -> Answer:
    auth, key = call.state.settings["auth"], call.given("api_key")
    if auth["api_key"]:
        raise Refused(400, "API key is already configured")
    if key != call.given("api_key_confirm"):
        raise Refused(400, "API keys do not match")
    auth["api_key"] = _key_form(key)
    call.state.save()
    call.headers["Set-Cookie"] = COOKIE.format(call.state.session(), 86400)
    return 200, {"success": True, "message": "API key saved."}


def _key_form(key: Any) -> str:
    if not isinstance(key, str) or len(key) < 4:
        raise Refused(400, "API key must be at least 4 characters")
    if not key.isprintable() or not key.isascii() or " " in key:
        raise Refused(400, "API key must not contain whitespace or unprintable characters")
    return key


def read_settings(call: Call) -> Answer:
    saved = call.state.settings
    auth = {name: value for name, value in saved["auth"].items() if name != "secret_key"}
    dirs = [str(path) for path in call.state.model_dirs]
    return 200, {
        "base_path": str(call.state.base),
        **{name: dict(group) for name, group in saved.items() if isinstance(group, dict)},
        "model": {**saved["model"], "effective_model_dirs": dirs},
        "auth": {**auth, "api_key_set": bool(auth["api_key"])},
        "system": {"platform": "darwin"},
    }


def save_settings(call: Call) -> Answer:
    body, saved = call.body, call.state.settings
    _checked(body)
    applied = []
    for name in filter(SAVED.__contains__, body):
        group, key = SAVED[name]
        value = None if name == "idle_timeout_seconds" and body[name] in (0, "") else body[name]
        if saved[group][key] != value and name not in ("host", "port"):
            applied.append(name)
        saved[group][key] = value
    # The real server keeps a wrong port in memory too, and then refuses everything until a right one comes.
    if not isinstance(saved["server"]["port"], int) or not 1 <= saved["server"]["port"] <= 65535:
        raise Refused(400, [f"Invalid port: {saved['server']['port']} (must be 1-65535)"])
    call.state.save()
    return 200, {"success": True, "message": "Settings saved successfully.", "runtime_applied": applied}


def _checked(body: dict[str, Any]) -> None:
    idle = body.get("idle_timeout_seconds")
    if isinstance(idle, int) and 0 < idle < 60:
        raise Refused(422, [{"type": "greater_than_equal", "loc": ["body"], "msg": "must be 60 or more"}])
    if "api_key" in body:
        _key_form(body["api_key"])
    if "host" in body:
        if not body["host"]:
            raise Refused(400, "Host cannot be empty")
        for host in str(body["host"]).split(","):
            if not _is_host(host.strip()):
                raise Refused(400, f"Invalid host: '{host}' (must be a hostname or IP address)")


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        named = re.fullmatch(r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*", text) is not None
        return named and not text.replace(".", "").isdigit()
    return True


def server_info(call: Call) -> Answer:
    server = call.state.settings["server"]
    return 200, {"host": server["host"], "port": server["port"], "aliases": server["server_aliases"]}


def restart(call: Call) -> Answer:
    if not call.double.personality.supervised:
        raise Refused(503, "Server is not running under a supervisor. Restart it the way it was started.")
    call.double.restart_soon()
    return 202, {"status": "restarting", "supervisor": "menubar", "expected_downtime_seconds": 7}


def add_sub_key(call: Call) -> Answer:
    auth, key = call.state.settings["auth"], _key_form(call.given("key"))
    if key == auth["api_key"]:
        raise Refused(400, "Sub key cannot be the same as the main key")
    if any(sub["key"] == key for sub in auth["sub_keys"]):
        raise Refused(400, "This key already exists")
    made = {
        "key": key,
        "name": call.body.get("name", ""),
        "created_at": datetime.now(timezone.utc).isoformat(),
    }
    auth["sub_keys"].append(made)
    call.state.save()
    return 200, {"success": True, "sub_key": made}


def delete_sub_key(call: Call) -> Answer:
    auth, key = call.state.settings["auth"], call.given("key")
    left = [sub for sub in auth["sub_keys"] if sub["key"] != key]
    if len(left) == len(auth["sub_keys"]):
        raise Refused(404, "Sub key not found")
    auth["sub_keys"] = left
    call.state.save()
    return 200, {"success": True}

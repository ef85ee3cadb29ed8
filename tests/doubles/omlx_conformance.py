#!/usr/bin/env python3
"""Asks a running oMLX for every exchange that this project relies on, and says where it answers otherwise.

Usage: omlx_conformance.py BASE_URL [ADMIN_KEY]

    python3 tests/doubles/omlx_conformance.py http://127.0.0.1:8000

ADMIN_KEY is oMLX's main key. Left out it is asked for, which keeps it out of the list of processes.
Nothing but Python 3.9 is needed. The server is left as found: a sub key is made and deleted; nothing is
downloaded, loaded, unloaded, pinned or restarted, and no setting changes.

Exit: 0 all as expected, 1 something differs, 2 the server or its admin login could not be reached.
"""

from __future__ import annotations

import base64
import getpass
import json
import secrets
import struct
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

NOBODY = "conformance-check-no-such"
VOLATILE = ("last_access", "is_loading", "loaded", "actual_size", "system")


class Answer(NamedTuple):
    """Status, headers (names in lower case), and the body as text and decoded (None if it is no JSON)."""

    status: int
    headers: dict[str, str]
    text: str
    body: Any

    @property
    def message(self) -> str:
        """The words of a refusal, in either of the two shapes."""
        body = self.body if isinstance(self.body, dict) else {}
        error = body.get("error")
        return str(error.get("message") if isinstance(error, dict) else body.get("detail"))


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """A redirect is an answer to be looked at."""


@dataclass
class Server:
    """One oMLX. `key` goes with calls to /v1, `cookie` with calls to /admin."""

    url: str
    key: str = ""
    cookie: str = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One exchange. Raises: OSError, HTTPException when there is no whole answer."""
        sent = {"Accept": "application/json", **{name.replace("_", "-"): v for name, v in headers.items()}}
        if body is not None:
            sent["Content-Type"] = "application/json"
        if path.startswith("/admin"):
            sent.setdefault("Cookie", self.cookie)
        else:
            sent.setdefault("Authorization", "Bearer " + self.key)
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {n: v for n, v in sent.items() if v}, method=method
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect())
        try:
            response = opener.open(request, timeout=120)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            text = response.read().decode("utf-8", "replace")
            told = {name.lower(): value for name, value in response.headers.items()}
            status = response.status
        try:
            return Answer(status, told, text, json.loads(text))
        except ValueError:
            return Answer(status, told, text, None)


class Report:
    """One line per expectation, at the moment it is known."""

    def __init__(self, hidden: Callable[[str], str]) -> None:
        self.differing, self.total, self._hidden = 0, 0, hidden

    def that(self, what: str, holds: bool, answer: Answer | None = None) -> None:
        """Tell whether it holds; if not, also what came instead."""
        self.total += 1
        self.differing += not holds
        print(f"{'ok     ' if holds else 'DIFFERS'}  {what}")
        if not holds and answer is not None:
            print(
                f"         got HTTP {answer.status}: {self._hidden(answer.text.strip())[:300] or '(nothing)'}"
            )

    def refuses(self, what: str, answer: Answer, status: int, words: str = "") -> None:
        """Tell whether an answer is this refusal."""
        self.that(
            f"{what}: {status} {words}".rstrip(), answer.status == status and words in answer.message, answer
        )

    @staticmethod
    def left_out(what: str, why: str) -> None:
        print(f"left out {what}: {why}")


def check_doors(server: Server, report: Report) -> None:
    """Who is let in where."""
    health = server.ask("GET", "/health", Authorization="")
    report.that(
        "/health needs no key and says healthy", health.status == 200 and "engine_pool" in health.body, health
    )
    none = server.ask("GET", "/v1/models", Authorization="")
    report.refuses("/v1 without a key", none, 401, "API key required")
    wrong = server.ask("GET", "/v1/models", Authorization="Bearer " + NOBODY)
    report.refuses("/v1 with a wrong key", wrong, 401, "Invalid API key")
    named = server.ask("GET", "/v1/models", Authorization="", x_api_key=server.key)
    report.that("/v1 takes the key as x-api-key too", named.status == 200, named)
    status = server.ask("GET", "/api/status")
    report.that(
        "/api/status names the version", status.status == 200 and bool(status.body.get("version")), status
    )
    login = "/admin/api/login"
    report.refuses(
        "login with a wrong key", server.ask("POST", login, {"api_key": NOBODY}), 401, "Invalid API key"
    )
    missing = server.ask("POST", login, {})
    listed = missing.status == 422 and isinstance(missing.body.get("detail"), list)
    report.that("login without a key field: 422 with a list", listed, missing)
    settings = "/admin/api/global-settings"
    bare = server.ask("GET", settings, Cookie="")
    report.refuses("/admin without a session", bare, 401, "Admin authentication required")
    bearer = server.ask("GET", settings, Cookie="", Authorization="Bearer " + server.key)
    report.refuses("/admin with the main key alone", bearer, 401, "Admin authentication required")
    page = server.ask("GET", settings, Cookie="", Accept="text/html")
    report.that("/admin sends a browser to the login page", page.status == 302, page)
    report.refuses("an unknown address", server.ask("GET", "/v1/" + NOBODY), 404, "Not Found")


def check_settings(server: Server, report: Report) -> None:
    """Reading all settings, and saving one as it is."""
    read = server.ask("GET", "/admin/api/global-settings")
    auth = read.body.get("auth", {})
    report.that("settings tell address and port", {"host", "port"} <= set(read.body.get("server", {})), None)
    told = {"api_key_set", "skip_api_key_verification", "sub_keys"} <= set(auth)
    report.that("settings tell whether keys are set and checked, and the sub keys", told, None)
    info = server.ask("GET", "/admin/api/server-info")
    same = info.status == 200 and info.body.get("host") == read.body["server"]["host"]
    report.that("server-info tells the saved address", same, info)
    size = read.body.get("scheduler", {}).get("embedding_batch_size")
    if size is None:
        return report.left_out("saving a setting", "it shows no embedding_batch_size")
    saved = server.ask("POST", "/admin/api/global-settings", {"embedding_batch_size": size})
    good = saved.status == 200 and isinstance(saved.body.get("runtime_applied"), list)
    return report.that("saving a setting as it is succeeds", good, saved)


def check_sub_keys(server: Server, report: Report) -> None:
    """A key's whole life; it is deleted whatever happens."""
    path, key, name = "/admin/api/sub-keys", secrets.token_hex(32), "conformance-check"
    try:
        made = server.ask("POST", path, {"key": key, "name": name})
        report.that("a sub key is made with the caller's value", made.status == 200, made)
        again = server.ask("POST", path, {"key": key, "name": name})
        report.refuses("the same value again", again, 400, "already exists")
        main = server.ask("POST", path, {"key": server.key, "name": name})
        report.refuses("the main key as a sub key", main, 400, "same as the main key")
        listed = server.ask("GET", "/admin/api/global-settings").body["auth"]["sub_keys"]
        report.that("settings list it in clear", key in [one.get("key") for one in listed])
        report.refuses("there is no list of sub keys", server.ask("GET", path), 405, "Method Not Allowed")
        used = server.ask("GET", "/v1/models", Authorization="Bearer " + key)
        report.that("it works at once", used.status == 200, used)
        login = server.ask("POST", "/admin/api/login", {"api_key": key})
        report.refuses("it opens no admin session", login, 401, "Invalid API key")
        status = server.ask("GET", "/v1/models/status", Authorization="Bearer " + key)
        report.that("it may ask which models are pinned", status.status == 200, status)
        by_name = server.ask("DELETE", path, {"name": name})
        report.that("deleting by name alone: 422", by_name.status == 422, by_name)
    finally:
        gone = server.ask("DELETE", path, {"key": key})
        report.that("it is deleted by its value", gone.status == 200, gone)
    report.refuses("deleting it again", server.ask("DELETE", path, {"key": key}), 404, "Sub key not found")
    late = server.ask("GET", "/v1/models", Authorization="Bearer " + key)
    report.refuses("it no longer works", late, 401, "Invalid API key")


def check_models(server: Server, report: Report) -> None:
    """How models are listed and addressed."""
    listed = server.ask("GET", "/admin/api/models")
    fields = {
        "id",
        "display_name",
        "loaded",
        "is_loading",
        "pinned",
        "model_type",
        "config_model_type",
        "estimated_size",
    }
    for model in listed.body.get("models", []):
        lacking = sorted(fields - set(model))
        report.that(
            f"{model.get('id')} is described{': it lacks ' + ', '.join(lacking) if lacking else ''}",
            not lacking,
        )
    path = f"/admin/api/models/{NOBODY}"
    unknown = server.ask("PUT", f"{path}/settings", {"is_pinned": None})
    report.refuses("settings of an unknown model", unknown, 404, "Model not found")
    report.that("loading an unknown model: 404", server.ask("POST", f"{path}/load").status == 404)
    slash = server.ask("PUT", f"/admin/api/models/nobody%2F{NOBODY}/settings", {"is_pinned": None})
    report.refuses("a model's address with a slash", slash, 404, "Not Found")
    public = server.ask("GET", "/v1/models")
    report.that("/v1/models lists them for clients", isinstance(public.body.get("data"), list), public)


def check_downloads(server: Server, report: Report) -> None:
    """What can be asked of downloads without making one."""
    tasks = server.ask("GET", "/admin/api/hf/tasks")
    report.that("downloads are listed", isinstance(tasks.body.get("tasks"), list), tasks)
    bad = server.ask("POST", "/admin/api/hf/download", {"repo_id": NOBODY})
    report.refuses("a repository without an owner", bad, 400, "Invalid repository ID")
    cancel = server.ask("POST", f"/admin/api/hf/cancel/{NOBODY}")
    report.refuses("cancelling an unknown download", cancel, 404, "not cancellable")
    retry = server.ask("POST", f"/admin/api/hf/retry/{NOBODY}", {"hf_token": ""})
    report.that("retrying an unknown download: 400", retry.status == 400, retry)
    forget = server.ask("DELETE", f"/admin/api/hf/task/{NOBODY}")
    report.refuses("forgetting an unknown download", forget, 404, "Task not found")


def check_embeddings(server: Server, report: Report) -> None:
    """Vectors of a model that is in memory already."""

    def embed(**body: Any) -> Answer:
        return server.ask("POST", "/v1/embeddings", body)

    report.refuses("vectors of an unknown model", embed(model=NOBODY, input="x"), 404, "Available models")
    models = server.ask("GET", "/admin/api/models").body["models"]
    model = next((m["id"] for m in models if m["model_type"] == "embedding" and m["loaded"]), None)
    if model is None:
        return report.left_out("vectors", "no embedding model is loaded; load one and run this again")
    one = embed(model="somebody/" + model.upper(), input="hello")
    rows = one.body.get("data", []) if isinstance(one.body, dict) else []
    report.that("a name in capitals with an owner finds the model", one.status == 200 and len(rows) == 1, one)
    if not rows:
        return None
    vector, echoed = rows[0]["embedding"], one.body["model"] == "somebody/" + model.upper()
    report.that("the answer echoes that name", echoed)
    report.that(
        "it comes in chunks, with a space first", one.text[:1] == " " and "content-length" not in one.headers
    )
    report.that(f"the vector has 768 numbers (here {len(vector)})", len(vector) == 768)
    length = sum(v * v for v in vector) ** 0.5
    report.that(f"and the length 1 (here {length:.4f})", abs(length - 1) < 0.01)
    batch = embed(model=model, input=["hello", "a longer text than the other one"])
    report.that(
        "several texts get several vectors", batch.status == 200 and len(batch.body["data"]) == 2, batch
    )
    coded = embed(model=model, input="hello", encoding_format="base64").body["data"][0]["embedding"]
    numbers = struct.unpack(f"<{len(vector)}f", base64.b64decode(coded))
    near = max(abs(a - b) for a, b in zip(numbers, vector)) < 1e-3  # noqa: B905 - Python 3.9 has no `strict`
    report.that("base64 holds the same numbers", near)
    short = embed(model=model, input="hello", dimensions=128).body["data"][0]["embedding"]
    report.that("fewer dimensions on request", len(short) == 128)
    report.refuses("an empty list", embed(model=model, input=[]), 400, "cannot be empty")
    report.that("numbers instead of texts: 422", embed(model=model, input=[1, 2]).status == 422)
    return report.that("no input at all: 422", embed(model=model).status == 422)


def state_of(server: Server) -> Any:
    """Settings, keys, models, pins and downloads, without what changes by itself."""

    def steady(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: steady(one) for name, one in value.items() if name not in VOLATILE}
        return [steady(one) for one in value] if isinstance(value, list) else value

    paths = ("/admin/api/global-settings", "/admin/api/models", "/admin/api/hf/tasks")
    return [steady(server.ask("GET", path).body) for path in paths]


def check(url: str, key: str) -> int:
    """All checks. Returns the exit code."""
    server = Server(url.rstrip("/"), key)
    report = Report(lambda text: text.replace(key, "[hidden]"))
    try:
        login = server.ask("POST", "/admin/api/login", {"api_key": key, "remember": False})
        if login.status != 200:
            print(
                f"{url} refuses the admin login: HTTP {login.status} {login.message}. Give oMLX's main key."
            )
            return 2
        cookie = login.headers.get("set-cookie", "")
        report.that("the main key opens a session", cookie.startswith("omlx_admin_session="))
        server.cookie = cookie.partition(";")[0]
        before = state_of(server)
        for part in (
            check_doors,
            check_settings,
            check_sub_keys,
            check_models,
            check_downloads,
            check_embeddings,
        ):
            try:
                part(server, report)
            except (AttributeError, KeyError, TypeError, ValueError, struct.error) as error:
                report.that(f"an answer has another shape ({part.__name__}: {error!r})", False)
        report.that("the server is as it was found", state_of(server) == before)
    except (OSError, HTTPException) as error:
        print(f"{url} does not answer ({getattr(error, 'reason', error)}). Is oMLX running there?")
        return 2
    print(f"{report.total - report.differing} of {report.total} as expected.")
    return 1 if report.differing else 0


def main() -> int:
    given = sys.argv[1:]
    if len(given) not in (1, 2) or urlsplit(given[0]).scheme not in ("http", "https"):
        print(__doc__)
        return 2
    return check(given[0], given[1] if len(given) == 2 else getpass.getpass("oMLX's main key: "))


if __name__ == "__main__":
    sys.exit(main())

"""One client of oMLX's admin API for all our modules: login, typed errors, time-outs, redaction.

Used while Ansible builds the second journey (a question's query vector). It runs on the always-on Mac, over
loopback. Modules ask it for things ("the models", "pin this"); only this file knows paths and status codes.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
import urllib.error
from http.client import HTTPException
from urllib.parse import quote

from ansible.module_utils.omlx_install import discover, loopback_urls
from ansible.module_utils.urls import Request

CONNECTION_ARGUMENTS = {
    "host": {"type": "str", "required": True},
    "home": {"type": "str", "required": True},
    "base_dir": {"type": "str", "default": ""},
    "port": {"type": "int", "default": 0},
    "admin_key": {"type": "str", "default": "", "no_log": True},
}
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
_RETRIED = (502, 503)
_LOGIN = "/admin/api/login"
# Ansible reads all certificates anew for each call, a fifth of a second; without TLS an empty store does.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class OmlxError(Exception):
    """A fault in one sentence for a person; the message never holds a secret."""


class OmlxAwayError(OmlxError):
    """Nothing answers at the address, or the connection broke."""


class OmlxRefusedError(OmlxError):
    """The server answered with an error. `status` is HTTP's number, `detail` the server's own words."""

    def __init__(self, message, status, detail):
        super().__init__(message)
        self.status = status
        self.detail = detail


def said(module, sentence):
    """A sentence for a person, who may be looking at several hosts: it begins with this one's name."""
    return "{0}: {1}".format(module.params["host"], sentence)


class Answer:
    """One answer: HTTP status, and the decoded JSON body (None when it isn't JSON)."""

    def __init__(self, status, body, cookie=""):
        self.status = status
        self.body = body
        self.cookie = cookie

    @property
    def detail(self):
        """The server's words about a fault: `detail` (text or list) or OpenAI's `error.message`."""
        body = self.body if isinstance(self.body, dict) else {}
        error = body.get("error")
        detail = error.get("message") if isinstance(error, dict) else body.get("detail", error)
        if isinstance(detail, list):
            detail = "; ".join(str(d.get("msg", d)) if isinstance(d, dict) else str(d) for d in detail)
        return " ".join(str(detail or "").split())[:500]


def exchange(url, method="GET", body=None, headers=None, timeout=10):
    """One HTTP exchange, whatever its status.

    Raises: OmlxAwayError when there was no complete answer. A proxy from the environment is never used: the
    addresses are this Mac's own or the tailnet's.
    """
    sent = {"Accept": "application/json", **(headers or {})}
    data = None
    if body is not None:
        sent["Content-Type"] = "application/json"
        data = json.dumps(body)
    try:
        # A new Request each time, because one keeps cookies. No netrc: its entry would replace our header.
        response = Request(context=_NO_TLS if url.startswith("http:") else None).open(
            method,
            url,
            data,
            sent,
            timeout=timeout,
            use_proxy=False,
            follow_redirects="none",
            use_netrc=False,
        )
    except urllib.error.HTTPError as error:
        response = error
    except (OSError, HTTPException, ValueError) as error:
        raise OmlxAwayError(
            "{0} does not answer ({1}). Start oMLX there, then run this again".format(url, _reason(error))
        ) from error
    try:
        with response:
            raw = response.read(_MAX_ANSWER_BYTES)
    except (OSError, HTTPException) as error:
        raise OmlxAwayError(
            "{0} broke off its answer ({1}). Look at oMLX there, then run this again".format(
                url, _reason(error)
            )
        ) from error
    cookie = (response.headers.get("Set-Cookie") or "").split(";")[0]
    return Answer(response.getcode() or response.code, _decoded(raw), cookie)


def _reason(error):
    inner = getattr(error, "reason", error)
    return "time-out" if isinstance(inner, socket.timeout) else str(inner) or type(inner).__name__


def _decoded(raw):
    # oMLX sends a space now and then while it works, so the text starts (and may consist of) blanks.
    try:
        return json.loads(raw.decode("utf-8").strip())
    except ValueError:
        return None


def wait_for(condition, seconds, every=0.5):
    """Ask `condition` until it holds or `seconds` are over. Returns whether it held."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(every)
    return True


class OmlxClient:
    """A logged-in admin. Login happens at the first call that needs it, and again after a session ended.

    `patience`: seconds that reading and logging in wait for a server that went away, as one does that is
    restarted.
    """

    def __init__(self, base_url, main_key, patience=0):
        self.base_url = base_url
        self._main_key = main_key
        self._patience = patience
        self._cookie = ""

    def health(self, timeout=5):
        """ "up", "loading" (it answers, models are still being read) or "away"."""
        try:
            answer = exchange(self.base_url + "/health", timeout=timeout)
        except OmlxAwayError:
            return "away"
        if answer.status == 503:
            return "loading"
        return "up" if answer.status == 200 else "away"

    def wait_until_up(self, seconds):
        """Wait for /health to say 200. Returns whether it did."""
        return wait_for(lambda: self.health() == "up", seconds)

    def login(self):
        """Open an admin session; a server with key checks off needs none."""
        answer = self._send("POST", _LOGIN, {"api_key": self._main_key, "remember": False}, {}, 15)
        if answer.status == 200 and answer.cookie:
            self._cookie = answer.cookie
        elif answer.status == 400:
            raise OmlxRefusedError(
                "oMLX at {0} has no main key. Set a long one in oMLX (Settings, Security) and run this "
                "again".format(self.base_url),
                400,
                answer.detail,
            )
        elif answer.status == 401:
            raise OmlxRefusedError(
                "oMLX at {0} refuses the main key. Set omlx_server_admin_key to the key that opens "
                "{0}/admin (a sub key does not)".format(self.base_url),
                401,
                answer.detail,
            )
        else:
            raise self._refused("log in", answer)

    def call(self, method, path, body=None, timeout=30, what=""):
        """An admin call that must succeed. Returns the decoded body.

        Raises: OmlxRefusedError for every answer but 200 and 202; OmlxAwayError.
        """
        answer = self.ask(method, path, body, timeout)
        if answer.status not in (200, 202) or not isinstance(answer.body, dict):
            raise self._refused(what or "{0} {1}".format(method, path), answer)
        return answer.body

    def ask(self, method, path, body=None, timeout=30):
        """An admin call whose status the caller judges. Logs in first, and once more after a 401."""
        if not self._cookie:
            self.login()
        answer = self._send(method, path, body, {"Cookie": self._cookie}, timeout)
        if answer.status == 401:
            self.login()
            answer = self._send(method, path, body, {"Cookie": self._cookie}, timeout)
        return answer

    def _send(self, method, path, body, headers, timeout):
        # Only reading and logging in are repeated: a write whose answer was lost may have been done.
        attempts = 3 if method == "GET" or path == _LOGIN else 1
        for attempt in range(attempts):
            last = attempt == attempts - 1
            try:
                answer = exchange(self.base_url + path, method, body, headers, timeout)
            except OmlxAwayError:
                if last:
                    raise
            else:
                if last or answer.status not in _RETRIED:
                    return answer
            time.sleep(1)
            if self._patience:
                self.wait_until_up(self._patience)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _refused(self, what, answer):
        text = "oMLX at {0} could not {1}: HTTP {2} {3}. Look at {0}/admin, then run this again".format(
            self.base_url, what, answer.status, self.redacted(answer.detail or "(no reason given)")
        )
        return OmlxRefusedError(text, answer.status, answer.detail)

    def redacted(self, text, *more):
        """`text` without the main key, the session and the given secrets."""
        for secret in (self._main_key, self._cookie.partition("=")[2], *more):
            if secret:
                text = text.replace(secret, "[hidden]")
        return text

    def settings(self):
        """All settings the server holds in memory. Contains keys in clear: never hand it on."""
        return self.call("GET", "/admin/api/global-settings", what="show its settings")

    def sub_keys(self, name):
        """Our entries among the sub keys, oldest first: [{key, name, created_at}]."""
        auth = self.settings().get("auth")
        entries = auth.get("sub_keys") if isinstance(auth, dict) else None
        found = [e for e in entries or [] if isinstance(e, dict) and e.get("name") == name and e.get("key")]
        return sorted(found, key=lambda entry: str(entry.get("created_at", "")))

    def models(self):
        """Every model the server lists, as it describes them."""
        listed = self.call("GET", "/admin/api/models", what="list its models").get("models")
        return [m for m in listed or [] if isinstance(m, dict) and isinstance(m.get("id"), str)]

    def model(self, model_id):
        """One model's description, or None."""
        return next((m for m in self.models() if m["id"] == model_id), None)

    def tasks(self, repo=None):
        """Download tasks, oldest first; of one repository if `repo` is given."""
        listed = self.call("GET", "/admin/api/hf/tasks", what="list its downloads").get("tasks")
        tasks = [t for t in listed or [] if isinstance(t, dict)]
        return [t for t in tasks if repo is None or t.get("repo_id") == repo]

    def version(self):
        """The server's version text ("" when it doesn't say)."""
        headers = {"Authorization": "Bearer " + self._main_key} if self._main_key else {}
        answer = self._send("GET", "/api/status", None, headers, 15)
        body = answer.body if isinstance(answer.body, dict) else {}
        return str(body.get("version", ""))[:40] if answer.status == 200 else ""


def model_path(model_id, action):
    """The admin path of one model. Ids come from folder names, so anything may stand in them."""
    return "/admin/api/models/{0}/{1}".format(quote(model_id, safe=""), action)


def connect(params, patience=0):
    """The client for a module's connection arguments, at the address that answers within `patience` seconds.

    Raises: OmlxError with the next step when oMLX isn't there or doesn't run.
    """
    install = discover(params["home"], params["base_dir"], params["port"], params["admin_key"])
    found = []

    def answers():
        found[:] = [first_answering(install, patience)]
        return found[0] is not None

    if not wait_for(answers, patience):
        raise OmlxAwayError(
            "oMLX does not answer on port {0} of this Mac (base folder {1}). Start it, or set "
            "omlx_server_port or omlx_server_base_dir if it is somewhere "
            "else".format(install.port, install.base_dir)
        )
    return found[0]


def first_answering(install, patience=0):
    """A client at the first local address where something answers /health, or None."""
    for url in loopback_urls(install.hosts, install.port):
        client = OmlxClient(url, install.main_key, patience)
        if client.health() != "away":
            return client
    return None

"""A conversation with an MCP server on standard input and output, as Hermes starts it.

Part of the Ansible run.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path

NOTHING = {
    "tools": [],
    "server": "",
    "problem": "",
    "milliseconds": 0,
    "answer": {},
    "answer_milliseconds": 0,
    "memory_kb": 0,
}


class NoAnswerError(Exception):
    """The server said nothing that can be used."""


def message(method, number=None, params=None):
    """One line of the protocol."""
    body = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        body["id"] = number
    if params is not None:
        body["params"] = params
    return json.dumps(body).encode() + b"\n"


def answer(stream, number):
    """The result of the request with this number. Notifications in between are skipped."""
    for line in stream:
        try:
            body = json.loads(line.decode("utf-8", "replace"))
        except ValueError:
            raise NoAnswerError("it printed something that is not the protocol: %r" % line[:80]) from None
        if isinstance(body, dict) and body.get("id") == number:
            if "result" not in body:
                raise NoAnswerError("it answered with an error: %s" % json.dumps(body.get("error"))[:200])
            return body["result"]
    raise NoAnswerError("it ended before it answered")


def converse(process):
    """Handshake and list of tools. Returns (tool names, server's name and version)."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "hermes-digup-role", "version": "1"},
    }
    process.stdin.write(message("initialize", 1, hello))
    process.stdin.flush()
    info = answer(process.stdout, 1).get("serverInfo", {})
    process.stdin.write(message("notifications/initialized") + message("tools/list", 2, {}))
    process.stdin.flush()
    tools = [tool["name"] for tool in answer(process.stdout, 2).get("tools", [])]
    return tools, "%s %s" % (info.get("name", ""), info.get("version", ""))


def call_tool(process, name, arguments):
    """Structured answer of one tool, and the milliseconds it took."""
    asked = time.monotonic()
    process.stdin.write(message("tools/call", 3, {"name": name, "arguments": arguments}))
    process.stdin.flush()
    result = answer(process.stdout, 3)
    if result.get("isError"):
        texts = [part.get("text", "") for part in result.get("content", [])]
        raise NoAnswerError("%s failed: %s" % (name, " ".join(texts)[:200]))
    return result.get("structuredContent") or {}, milliseconds_since(asked)


def memory_kb(process):
    """Pages of the process, those it shares counted in part (Linux; 0 elsewhere)."""
    try:
        lines = Path("/proc/%d/smaps_rollup" % process.pid).read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def end(process):
    """Closes the server's input, as a client that leaves does, and kills it if it stays."""
    try:
        process.stdin.close()
        process.wait(5)
    except (OSError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()


def talk(process, given):
    """Talks to a started server and ends it. Returns what `converse_with` returns."""
    started = time.monotonic()
    said = []
    listener = threading.Thread(target=lambda: said.append(process.stderr.read()), daemon=True)
    listener.start()
    timeout = given["timeout"]
    watchdog = threading.Timer(timeout, process.kill)
    watchdog.start()
    found = dict(NOTHING)
    try:
        found["tools"], found["server"] = converse(process)
        found["milliseconds"] = milliseconds_since(started)
        if given.get("tool"):
            found["answer"], found["answer_milliseconds"] = call_tool(
                process, given["tool"], given["arguments"]
            )
    except (NoAnswerError, OSError) as error:
        found["problem"] = str(error)
    found["memory_kb"] = memory_kb(process)
    watchdog.cancel()
    if found["problem"] and milliseconds_since(started) >= timeout * 1000:
        found["problem"] = "it did not answer within %d s" % timeout
    end(process)
    listener.join(5)
    process.stdout.close()
    process.stderr.close()
    lines = b"".join(said).decode("utf-8", "replace").strip().splitlines()
    if found["problem"] and lines:
        found["problem"] += " (%s)" % lines[-1][:200]
    return found


def milliseconds_since(started):
    return int((time.monotonic() - started) * 1000)


def converse_with(command, given):
    """Starts a command with the few variables that Hermes passes on, lists its tools, calls one and ends it.

    `given`: home, environment, timeout, and perhaps tool and arguments. Returns the keys of NOTHING; a server
    that does not answer is a `problem`, no exception.
    """
    seen = {
        "PATH": os.pathsep.join([str(Path(command[0]).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(given["home"]),
        "LANG": "C.UTF-8",
    }
    seen.update({key: str(value) for key, value in given["environment"].items()})
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, env=seen, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603  # no shell
    except OSError as error:
        return dict(NOTHING, problem="%s cannot be started: %s" % (command[0], error.strerror))
    return talk(process, given)

#!/usr/bin/python
"""Starts an MCP server as Hermes does, lists its tools, asks it. Part of the Ansible run; changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: mcp_stdio_info
short_description: Ask an MCP server on standard input and output
description:
  - Starts a command with the few variables that Hermes passes on, does the MCP handshake, lists the tools,
    calls one if wanted, and ends it.
  - A server that does not answer is a value, not a failure; see I(problem).
options:
  command:
    description: The command and its arguments.
    type: list
    elements: str
    required: true
  environment:
    description: Variables beside PATH, HOME and LANG.
    type: dict
    default: {}
  home:
    description: The home folder that the server sees.
    type: path
    required: true
  tool:
    description: The tool to call after the list. Empty for none.
    type: str
    default: ""
  arguments:
    description: What the tool is called with.
    type: dict
    default: {}
  timeout:
    description: Seconds for the whole conversation.
    type: int
    default: 60
attributes:
  check_mode:
    description: Changes nothing.
    support: full
  diff_mode:
    description: Nothing to show.
    support: none
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Ask the server for its tools
  mcp_stdio_info:
    command: [/home/pi/.local/bin/hermes-digup, serve]
    home: /home/pi

- name: Ask for the newest file
  mcp_stdio_info:
    command: [/home/pi/.local/bin/hermes-digup, serve]
    home: /home/pi
    tool: browse_files
    arguments: {limit: 1}
"""

RETURN = r"""
tools: {description: Names of the tools., type: list, elements: str, returned: always}
server: {description: Name and version of the server., type: str, returned: always}
milliseconds: {description: From the start of the process to the list of tools., type: int, returned: always}
problem: {description: Why there is no list or no answer, or empty., type: str, returned: always}
answer: {description: The tool's structured answer., type: dict, returned: always}
answer_milliseconds: {description: From the call to its answer., type: int, returned: always}
memory_kb: {description: Its share of memory (PSS) at the end; 0 if not known., type: int, returned: always}
"""

import json
import os
import subprocess
import threading
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

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


def talk(process, params):
    """Talks to a started server and ends it. Returns what the module returns."""
    started = time.monotonic()
    said = []
    listener = threading.Thread(target=lambda: said.append(process.stderr.read()), daemon=True)
    listener.start()
    timeout = params["timeout"]
    watchdog = threading.Timer(timeout, process.kill)
    watchdog.start()
    found = dict(NOTHING)
    try:
        found["tools"], found["server"] = converse(process)
        found["milliseconds"] = milliseconds_since(started)
        if params["tool"]:
            found["answer"], found["answer_milliseconds"] = call_tool(
                process, params["tool"], params["arguments"]
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


def main():
    module = AnsibleModule(
        argument_spec={
            "command": {"type": "list", "elements": "str", "required": True},
            "environment": {"type": "dict", "default": {}},
            "home": {"type": "path", "required": True},
            "tool": {"type": "str", "default": ""},
            "arguments": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    command = module.params["command"]
    environment = {
        "PATH": os.pathsep.join([str(Path(command[0]).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": module.params["home"],
        "LANG": "C.UTF-8",
    }
    environment.update({key: str(value) for key, value in module.params["environment"].items()})
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603  # no shell
    except OSError as error:
        problem = "%s cannot be started: %s" % (command[0], error.strerror)
        module.exit_json(changed=False, **dict(NOTHING, problem=problem))
    module.exit_json(changed=False, **talk(process, module.params))


if __name__ == "__main__":
    main()

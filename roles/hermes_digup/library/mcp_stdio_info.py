#!/usr/bin/python
"""Starts an MCP server as Hermes would and lists its tools. Part of the Ansible run, changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: mcp_stdio_info
short_description: List the tools of an MCP server on standard input and output
description:
  - Starts a command with the few variables that Hermes passes on, does the MCP handshake, lists the tools and
    ends it.
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
"""

RETURN = r"""
tools: {description: Names of the tools., type: list, elements: str, returned: always}
server: {description: Name and version of the server., type: str, returned: always}
milliseconds: {description: From the start of the process to the list of tools., type: int, returned: always}
problem: {description: Why there is no list, or empty., type: str, returned: always}
"""

import json
import os
import subprocess
import threading
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule


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


def end(process):
    """Closes the server's input, as a client that leaves does, and kills it if it stays."""
    try:
        process.stdin.close()
        process.wait(5)
    except (OSError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()


def talk(process, timeout):
    """Talks to a started server and ends it. Returns what the module returns."""
    started = time.monotonic()
    said = []
    listener = threading.Thread(target=lambda: said.append(process.stderr.read()), daemon=True)
    listener.start()
    watchdog = threading.Timer(timeout, process.kill)
    watchdog.start()
    tools, server, problem = [], "", ""
    try:
        tools, server = converse(process)
    except (NoAnswerError, OSError) as error:
        problem = str(error)
    milliseconds = int((time.monotonic() - started) * 1000)
    watchdog.cancel()
    if problem and milliseconds >= timeout * 1000:
        problem = "it did not answer within %d s" % timeout
    end(process)
    listener.join(5)
    process.stdout.close()
    process.stderr.close()
    lines = b"".join(said).decode("utf-8", "replace").strip().splitlines()
    if problem and lines:
        problem += " (%s)" % lines[-1][:200]
    return {"tools": tools, "server": server, "problem": problem, "milliseconds": milliseconds}


def main():
    module = AnsibleModule(
        argument_spec={
            "command": {"type": "list", "elements": "str", "required": True},
            "environment": {"type": "dict", "default": {}},
            "home": {"type": "path", "required": True},
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
        module.exit_json(changed=False, tools=[], server="", problem=problem, milliseconds=0)
    module.exit_json(changed=False, **talk(process, module.params["timeout"]))


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Starts the deployed MCP server as Hermes would and asks for its tools. Part of the Ansible run, changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: mcp_stdio_info
short_description: List the tools of an MCP server on standard input and output
description:
  - Starts a command with the few variables that Hermes passes on, does the MCP handshake, lists the tools and ends it.
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

from ansible.module_utils.basic import AnsibleModule


class NoAnswer(Exception):
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
    """The result of the request with this number; notifications and log lines in between are skipped."""
    for line in stream:
        try:
            body = json.loads(line.decode("utf-8", "replace"))
        except ValueError:
            raise NoAnswer("it printed something that is not the protocol: %r" % line[:80])
        if isinstance(body, dict) and body.get("id") == number:
            if "result" not in body:
                raise NoAnswer("it answered with an error: %s" % json.dumps(body.get("error"))[:200])
            return body["result"]
    raise NoAnswer("it ended before it answered")


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


def run(command, environment, timeout):
    """Starts the server, talks to it and ends it. Returns (tools, server, problem)."""
    try:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        return [], "", "%s cannot be started: %s" % (command[0], error.strerror)
    said = []
    listener = threading.Thread(target=lambda: said.append(process.stderr.read()), daemon=True)
    listener.start()
    watchdog = threading.Timer(timeout, process.kill)
    watchdog.start()
    try:
        tools, server, problem = converse(process) + ("",)
    except (NoAnswer, OSError) as error:
        tools, server, problem = [], "", str(error)
    finally:
        if watchdog.is_alive():
            watchdog.cancel()
            end(process)
        else:
            problem = "it did not answer within %d s" % timeout
        process.wait()
    listener.join(5)
    lines = b"".join(said).decode("utf-8", "replace").strip().splitlines()
    return tools, server, problem + (" (%s)" % lines[-1][:200] if problem and lines else "")


def end(process):
    """Closes the server's input, as a client that leaves does, and ends it if it stays."""
    try:
        process.stdin.close()
        process.wait(5)
    except (OSError, subprocess.TimeoutExpired):
        process.kill()


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
        "PATH": os.pathsep.join([os.path.dirname(command[0]), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": module.params["home"],
        "LANG": "C.UTF-8",
    }
    environment.update({key: str(value) for key, value in module.params["environment"].items()})
    started = time.monotonic()
    tools, server, problem = run(command, environment, module.params["timeout"])
    module.exit_json(
        changed=False,
        tools=tools,
        server=server,
        problem=problem,
        milliseconds=int((time.monotonic() - started) * 1000),
    )


if __name__ == "__main__":
    main()

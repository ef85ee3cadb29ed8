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

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.digup_mcp_talk import converse_with


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
    module.exit_json(changed=False, **converse_with(module.params["command"], module.params))


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""oMLX runs, is guarded by a main key, and listens where the agents can reach it (a question's wire)."""

from __future__ import annotations

DOCUMENTATION = r"""
module: omlx_settings
short_description: Start oMLX and make it listen on the network
description:
  - Finds oMLX on this Mac, starts it if it isn't running, and waits through "loading".
  - With O(expose=all) it makes oMLX listen on all networks, after proving that a main key is set and that
    keys are checked. A setting is saved only if it differs; a restart happens only if the address isn't
    really bound.
  - O(expose=none) leaves the listening address alone.
options:
  host: {description: Inventory name of this host; sentences begin with it., type: str, required: true}
  home: {description: Home folder of the user who runs oMLX., type: str, required: true}
  base_dir: {description: oMLX's base folder; found if empty., type: str, default: ""}
  port: {description: oMLX's port; found if 0., type: int, default: 0}
  admin_key: {description: oMLX's main key; read from its settings if empty., type: str, default: ""}
  expose: {description: Who may reach oMLX., type: str, choices: [all, none], default: none}
  agent_urls:
    description: Base URLs the agents will use; a bare name or address becomes a URL with oMLX's port.
    type: list
    elements: str
    default: []
  start_command: {description: How to start oMLX; found if empty., type: list, elements: str, default: []}
  restart_command: {description: How to restart oMLX; found if empty., type: list, elements: str, default: []}
  timeout_seconds: {description: How long a start or restart may take., type: int, default: 180}
  idle_timeout_seconds: {description: How long a restart waits for downloads., type: int, default: 600}
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Listen on the tailnet
  omlx_settings:
    host: mac-mini
    home: /Users/me
    expose: all
    agent_urls: [mac-mini.example.ts.net]
"""

RETURN = r"""
running: {description: Whether oMLX answers now., type: bool, returned: always}
base_url: {description: Its address on this Mac., type: str, returned: always}
port: {description: Its port., type: int, returned: always}
version: {description: Its version., type: str, returned: when running}
short_main_key: {description: Whether its main key is easily guessed., type: bool, returned: when running}
open_to:
  description: Its addresses on local networks, where everybody can try main keys.
  type: list
  returned: when running
restarted: {description: Whether it was (or would be) restarted., type: bool, returned: always}
agent_urls: {description: The base URLs for the agents., type: list, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.omlx_client import (
    CONNECTION_ARGUMENTS,
    OmlxAwayError,
    OmlxError,
    OmlxRefusedError,
    first_answering,
    said,
    wait_for,
)
from ansible.module_utils.omlx_install import base_url, discover, program
from ansible.module_utils.omlx_reach import as_url, listens_everywhere, open_to, reach, serves_the_network
from ansible.module_utils.omlx_restart import loaded_models, reload_models, restart, wait_for_idle

LONG_KEY = 16
ALL_NETWORKS = "0.0.0.0"  # noqa: S104 - the whole point of `expose: all`, behind guard()
_PROOF_SECONDS = 30


def main():
    module = AnsibleModule(
        argument_spec={
            **CONNECTION_ARGUMENTS,
            "expose": {"type": "str", "choices": ["all", "none"], "default": "none"},
            "agent_urls": {"type": "list", "elements": "str", "default": []},
            "start_command": {"type": "list", "elements": "str", "default": []},
            "restart_command": {"type": "list", "elements": "str", "default": []},
            "timeout_seconds": {"type": "int", "default": 180},
            "idle_timeout_seconds": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    try:
        result = converge(module)
    except OmlxError as error:
        module.fail_json(msg=said(module, error))
    module.exit_json(**result)


def converge(module):
    """Bring oMLX up and out; returns the module's result."""
    params = module.params
    install = find(params)
    result = {
        "changed": False,
        "running": False,
        "restarted": False,
        "base_url": base_url("127.0.0.1", install.port),
        "port": install.port,
        "agent_urls": [as_url(item, install.port) for item in params["agent_urls"]],
    }
    client = first_answering(install)
    if client is None:
        command = start_command(params, install)
        result.update(changed=True, diff={"before": {"running": False}, "after": {"running": True}})
        if module.check_mode:
            return result
        client = start(module, command, install)
    if not client.wait_until_up(params["timeout_seconds"]):
        raise OmlxAwayError(
            "oMLX at {0} has been loading models for {1} s and is not ready. Look at {0}/admin and "
            "{2}/logs".format(client.base_url, params["timeout_seconds"], install.base_dir)
        )
    client.login()
    result.update(running=True, base_url=client.base_url, version=client.version())
    # Looked up again: a first start may have written it just now.
    result["short_main_key"] = len(find(params).main_key) < LONG_KEY
    result["open_to"] = open_to(install.port)
    if params["expose"] == "all":
        expose(module, client, result)
    return result


def find(params):
    """Where oMLX is, from the module's arguments."""
    return discover(params["home"], params["base_dir"], params["port"], params["admin_key"])


def start_command(params, install):
    """The argv that starts oMLX. Raises: OmlxAwayError when it isn't installed in a way we know."""
    command = params["start_command"] or program(params["home"], "start")
    if not command:
        raise OmlxAwayError(
            "oMLX does not answer on port {0} of this Mac, and neither its app nor its Homebrew service was "
            "found. {1} and run this again".format(
                install.port,
                "Start it by hand"
                if install.found
                else "Install it from https://omlx.ai, set a main key in it",
            )
        )
    return command


def start(module, command, install):
    """Run the start command and wait for the first answer."""
    run(module, command, "start")
    seconds = module.params["timeout_seconds"]
    found = []

    def answering():
        # Looked up anew each time: a first start writes settings.json, and with it port and key.
        found[:] = [first_answering(find(module.params))]
        return found[0] is not None

    if not wait_for(answering, seconds):
        raise OmlxAwayError(
            "oMLX was started ({0}) but does not answer on port {1} after {2} s. Look at {3}/logs".format(
                " ".join(command), install.port, seconds, install.base_dir
            )
        )
    return found[0]


def run(module, command, what):
    """Run a start or restart command. Raises: OmlxError with its last words."""
    try:
        code, out, err = module.run_command(command, handle_exceptions=False)
    except OSError as error:
        raise OmlxError(
            "could not {0} oMLX: `{1}`: {2}. Do that by hand, then run this again".format(
                what, " ".join(command), error
            )
        ) from error
    if code != 0:
        words = (err.strip() or out.strip() or "no message").splitlines()[-1][:300]
        raise OmlxError(
            "could not {0} oMLX: `{1}` ended with {2}: {3}. Do that by hand, then run this again".format(
                what, " ".join(command), code, words
            )
        )


def expose(module, client, result):
    """Make oMLX listen beyond this Mac, and prove it. Fills `result`."""
    settings = client.settings()
    guard(client, settings)
    urls = result["agent_urls"]
    saved = str((settings.get("server") or {}).get("host") or "")
    before = reach(urls)
    save = not listens_everywhere(saved) and not serves_the_network(before)
    # Saved is not bound: only a connection shows what the running process listens on.
    again = save or ("refused" in before.values() and "answers" not in before.values())
    result.update(restarted=again)
    if again:
        result["changed"] = True
        after = ALL_NETWORKS if save else saved
        result["diff"] = {
            "before": {"host": saved, "reachable": before},
            "after": {"host": after, "reachable": dict.fromkeys(before, "answers")},
        }
        if module.check_mode:
            return
        wait_for_idle(client, module.params["idle_timeout_seconds"])
        if save:
            save_host(client, saved)
        restart_with_models(module, client)
    prove(module, client, urls, wait=again and not module.check_mode)


def guard(client, settings):
    """Refuse to expose a server that would let anybody in. Raises: OmlxRefusedError."""
    auth = settings.get("auth") or {}
    if not auth.get("api_key_set", bool(auth.get("api_key"))):
        raise OmlxRefusedError(
            "oMLX at {0} has no main key, so it will not be opened to the network. Set a long main key in "
            "oMLX (Settings, Security), or set omlx_server_expose to none".format(client.base_url),
            400,
            "",
        )
    if auth.get("skip_api_key_verification"):
        raise OmlxRefusedError(
            "oMLX at {0} does not check keys (skip API key verification is on), so it will not be opened to "
            "the network. Turn that off in oMLX (Settings, Security), or set omlx_server_expose to "
            "none".format(client.base_url),
            400,
            "",
        )


def save_host(client, former):
    """Save the wildcard address; if it is refused, put the former one back: no bad value stays in memory."""
    try:
        client.call(
            "POST", "/admin/api/global-settings", {"host": ALL_NETWORKS}, what="save its listening address"
        )
    except OmlxRefusedError:
        client.ask("POST", "/admin/api/global-settings", {"host": former})
        raise


def restart_with_models(module, client):
    """Restart, then load again what other people's work had in memory."""
    params = module.params
    wanted = loaded_models(client)
    command = params["restart_command"] or program(params["home"], "restart")
    restart(client, lambda argv, what: run(module, argv, what), command, params["timeout_seconds"])
    missing = reload_models(client, wanted)
    if missing:
        module.warn(said(module, "oMLX could not load again: {0}".format(", ".join(missing))))


def prove(module, client, urls, wait):
    """Fail unless oMLX answers at one of the agents' addresses; name each one that stays silent."""
    states = {}

    def answered():
        states.update(reach(urls))
        return "answers" in states.values() or "refused" not in states.values()

    if not wait_for(answered, _PROOF_SECONDS if wait else 0):
        raise OmlxError(
            "oMLX is set to listen on all networks but {0} still refuses. Quit oMLX completely and start it "
            "again; if that changes nothing, allow it in System Settings, Network, Firewall".format(
                " and ".join(sorted(states))
            )
        )
    for url, state in sorted(states.items()):
        if state == "unknown":
            module.warn(said(module, "does not know the name in {0}; only an agent can prove it".format(url)))
        elif state == "refused":
            module.warn(said(module, "oMLX is silent at {0}, but not at another of its URLs".format(url)))


if __name__ == "__main__":
    main()

"""`serve`: the service behind one of the two transports."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from hermes_digup.cli.indexes import opened_service
from hermes_digup.cli.memory import give_memory_back
from hermes_digup.errors import SettingsError
from hermes_digup.mcp_server import HttpAddress, build_server, serve_http, serve_stdio
from hermes_digup.settings import Settings

WAITING = (
    "hermes-digup: Waiting for an agent to speak MCP here. People use: hermes-digup search. Ctrl-D ends it.\n"
)


def serve_agents(arguments: argparse.Namespace, settings: Settings, environ: Mapping[str, str]) -> int:
    """Serves until the client goes (standard input) or a signal comes (HTTP).

    Raises: SettingsError for an option that would do nothing.
    """
    if not arguments.http and (arguments.host or arguments.port or arguments.name or arguments.anywhere):
        raise SettingsError("--host, --port, --name and --anywhere go with --http; add it or leave them out")
    if not arguments.http and sys.stdin.isatty():
        sys.stderr.write(WAITING)
    give_memory_back()
    with opened_service(settings, environ, keep_looking=True) as service:
        server = build_server(service, results=arguments.results or settings.results)
        if not arguments.http:
            serve_stdio(server)
        address = HttpAddress(
            arguments.host or "127.0.0.1",
            arguments.port or 8765,
            anywhere=arguments.anywhere,
            names=tuple(arguments.name),
        )
        serve_http(server, address, settings.http_token, log_level=settings.log_level)
    return 0

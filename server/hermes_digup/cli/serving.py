"""`serve`: the service behind one of the two transports."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from hermes_digup.cli.indexes import opened_service
from hermes_digup.mcp_server import HttpAddress, build_server, serve_http, serve_stdio
from hermes_digup.settings import Settings


def serve_agents(arguments: argparse.Namespace, settings: Settings, environ: Mapping[str, str]) -> int:
    """Serves until the client goes (standard input) or a signal comes (HTTP)."""
    with opened_service(settings, environ, keep_looking=True) as service:
        server = build_server(service, results=arguments.results or settings.results)
        if not arguments.http:
            serve_stdio(server)
        address = HttpAddress(
            arguments.host, arguments.port, anywhere=arguments.anywhere, names=tuple(arguments.name)
        )
        serve_http(server, address, settings.http_token, log_level=settings.log_level)
    return 0

"""The server over a pipe, as Hermes starts it: leaves at once when its client goes."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import Any, NoReturn

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server


def serve_stdio(server: Server[Any]) -> NoReturn:
    """Serves until standard input closes or Ctrl-C comes, then ends the process.

    Threads may still be in the middle of a query, or of reading the next request; nothing needs their end, as
    all is read only, so the process does not wait for them (the client waits about two seconds before it
    kills).
    """
    signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    try:
        anyio.run(_served, server)
    finally:
        logging.shutdown()
        sys.stderr.flush()
        os._exit(0)


async def _served(server: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

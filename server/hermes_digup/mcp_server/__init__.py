"""The face for agents: six tools over the Model Context Protocol, by pipe or by HTTP."""

from __future__ import annotations

from hermes_digup.mcp_server.definitions import DEFINITIONS
from hermes_digup.mcp_server.http import HttpAddress, serve_http
from hermes_digup.mcp_server.server import build_server
from hermes_digup.mcp_server.stdio import serve_stdio

__all__ = ["DEFINITIONS", "HttpAddress", "build_server", "serve_http", "serve_stdio"]

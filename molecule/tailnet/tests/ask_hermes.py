"""Run by Hermes's own Python on the Pi: asks once through its client, and prints what its model would read.

Usage: python - QUESTION      (the home's config.yaml has the server `digup`)
"""

from __future__ import annotations

import json
import os
import sys

from tools import mcp_tool
from tools.registry import registry

mcp_tool.discover_mcp_tools()
answer = registry.dispatch("mcp__digup__search_files", {"query": sys.argv[1], "limit": 3})
sys.stdout.write((answer if isinstance(answer, str) else json.dumps(answer)) + "\n")
sys.stdout.flush()
# Hermes's client leaves threads that would keep the process alive.
os._exit(0)

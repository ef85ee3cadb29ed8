"""Run by Hermes's own Python: calls our tools through Hermes's client, and prints what a model would read.

Usage: hermes_calls.py            (HERMES_HOME names a home whose config.yaml has the server `digup`)

One JSON object on the last line: the registered names, the answer of each tool, and of many misses in a row.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tools import mcp_tool
from tools.registry import registry

MISSES = 20


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """One tool call as Hermes makes it for its model."""
    answer = registry.dispatch(f"mcp__digup__{tool}", arguments)
    return json.loads(answer) if isinstance(answer, str) else answer


def calls() -> dict[str, Any]:
    found = call("search_files", query="INV-2026-0042")
    hit = found["structuredContent"]["hits"][0]
    answers = {
        "search_files": found,
        "search_code": call("search_code", query="retry request pauses"),
        "read_passage": call("read_passage", segment_id=hit["segment_id"], context=1),
        "read_file": call("read_file", path=hit["path"]),
        "browse_files": call("browse_files", kinds=["pdf"], limit=3),
        "index_status": call("index_status"),
    }
    misses = [call("read_file", path=f"/nowhere/{number}") for number in range(MISSES)]
    misses += [call("read_passage", segment_id=f"macbook:{number}:0123456789") for number in range(MISSES)]
    misses += [call("search_files", query="qqzzxx", limit="no number") for _ in range(MISSES)]
    return {"answers": answers, "misses": misses, "after": call("search_files", query="INV-2026-0042")}


def main() -> None:
    names = mcp_tool.discover_mcp_tools()
    shown = {"names": names, **calls()}
    mcp_tool.shutdown_mcp_servers()
    print(json.dumps(shown))
    sys.stdout.flush()
    # Hermes's client leaves threads that would keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main()

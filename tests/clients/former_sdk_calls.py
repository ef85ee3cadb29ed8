"""Run by a Python with the official SDK 1.x: lists and calls the six tools, and prints what came as JSON.

Usage: former_sdk_calls.py stdio|http RESULTS TARGET [TOKEN]
    TARGET is the command of `hermes-digup`, or the address of a served one.

The client holds each structured answer to the tool's output schema and raises where it does not fit.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

MISTAKES = [
    ("search_files", {}),
    ("search_files", {"query": "x", "kinds": ["spreadsheet"]}),
    ("search_files", {"query": "qqzzxx"}),
    ("search_code", {"query": "qqzzxx"}),
    ("read_passage", {"segment_id": "12"}),
    ("read_passage", {"segment_id": "macbook:1:0123456789"}),
    ("read_file", {"path": "/nowhere"}),
    ("browse_files", {"folder": "/nowhere"}),
    ("index_status", {"verbose": True}),
]


async def ask(session: ClientSession, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = await session.call_tool(tool, arguments)
    text = "\n".join(block.text for block in answer.content)
    return {"error": answer.isError, "text": text, "structured": answer.structuredContent}


async def calls(session: ClientSession) -> dict[str, Any]:
    hello = await session.initialize()
    tools = (await session.list_tools()).tools
    found = await ask(session, "search_files", {"query": "INV-2026-0042"})
    hit_id = found["text"].split("; id ")[1].split()[0]
    path = found["text"].split("1. ")[1].split(", page 1")[0]
    answers = {
        "search_files": found,
        "search_code": await ask(session, "search_code", {"query": "retry request pauses"}),
        "read_passage": await ask(session, "read_passage", {"segment_id": hit_id}),
        "read_file": await ask(session, "read_file", {"path": path}),
        "browse_files": await ask(session, "browse_files", {"limit": 3}),
        "index_status": await ask(session, "index_status", {}),
    }
    together = [ask(session, "search_files", {"query": f"invoice {number}"}) for number in range(8)]
    return {
        "protocol": hello.protocolVersion,
        "names": [tool.name for tool in tools],
        "schemas": sum(tool.outputSchema is not None for tool in tools),
        "answers": answers,
        "mistakes": [await ask(session, tool, arguments) for tool, arguments in MISTAKES],
        "together": await asyncio.gather(*together),
    }


async def main(transport: str, results: str, target: str, token: str = "") -> None:
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            args = ["serve", "--results", results]
            server = StdioServerParameters(command=target, args=args, env=dict(os.environ))
            read, write = await stack.enter_async_context(stdio_client(server))
        else:
            headers = {"Authorization": f"Bearer {token}"}
            read, write, _ = await stack.enter_async_context(streamablehttp_client(target, headers=headers))
        session = await stack.enter_async_context(ClientSession(read, write))
        print(json.dumps(await calls(session)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

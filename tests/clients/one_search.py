"""Asks a `hermes-digup` command one question over MCP's stdio, and prints what a model reads.

Usage: one_search.py COMMAND QUESTION      (run by a Python that has the package `mcp`)
"""

from __future__ import annotations

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def ask(command: str, question: str) -> str:
    server = StdioServerParameters(command=command, args=["serve", "--results", "text"])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        answer = await session.call_tool("search_files", {"query": question, "limit": 3})
        if answer.is_error:
            raise SystemExit(f"The server answered an error: {answer.content}")
        return "\n".join(block.text for block in answer.content if block.type == "text")


if __name__ == "__main__":
    print(asyncio.run(ask(sys.argv[1], sys.argv[2])))

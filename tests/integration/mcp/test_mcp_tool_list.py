"""What an agent reads before its first call."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client
from mcp.server import Server

from hermes_digup.mcp_server import DEFINITIONS, build_server
from hermes_digup.service import Service
from hermes_digup.settings import load

NAMES = ["search_files", "search_code", "read_passage", "read_file", "browse_files", "index_status"]
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def server(home: Path, results: str) -> Server[Any]:
    """A server without a process, on a host where nothing was delivered."""
    environ = {"HOME": str(home)}
    return build_server(Service(load(environ), environ=environ, sources=lambda: []), results=results)


async def listed(home: Path, results: str, mode: str = "auto") -> list[dict[str, Any]]:
    """The tool list that a client sees."""
    async with Client(server(home, results), mode=mode) as client:
        tools = (await client.list_tools()).tools
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_six_tools_are_listed_without_any_index(tmp_path, mode: str) -> None:
    tools = await listed(tmp_path, "both", mode)

    assert [tool["name"] for tool in tools] == NAMES


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_nothing_but_tools_is_advertised(tmp_path, mode: str) -> None:
    async with Client(server(tmp_path, "both"), mode=mode) as client:
        capabilities = client.server_capabilities.model_dump(exclude_none=True)
        info = client.server_info

    assert set(capabilities) <= {"tools", "experimental"}
    assert info.version


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.name)
async def test_each_tool_is_described_for_those_who_choose(definition) -> None:
    first_line = definition.description.split("\n")[0]
    named = {
        name for name in re.findall(r"[a-z]+_[a-z]+", definition.description) if name not in ("next_offset",)
    }

    assert len(first_line) <= 60
    assert first_line.endswith(".")
    assert named <= set(NAMES) - {definition.name}
    assert named


async def test_no_two_descriptions_begin_alike() -> None:
    assert len({each.description[:60] for each in DEFINITIONS}) == len(DEFINITIONS)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.name)
async def test_each_schema_is_closed_and_described(definition) -> None:
    given, answered = definition.input_schema(), definition.output_schema()

    assert given["additionalProperties"] is False
    assert answered["additionalProperties"] is False
    for name, schema in given["properties"].items():
        assert len(schema["description"].split()) >= 3, name
        if schema["type"] == "integer":
            assert "minimum" in schema
    for each in [answered, *answered.get("$defs", {}).values()]:
        for name, schema in each["properties"].items():
            assert len(schema["description"].split()) >= 3, name
    jsonschema.Draft202012Validator.check_schema(given)
    jsonschema.Draft202012Validator.check_schema(answered)


async def test_every_tool_says_that_it_only_reads(tmp_path) -> None:
    tools = await listed(tmp_path, "both")

    for tool in tools:
        assert tool["annotations"] == {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
        assert tool["title"]


async def test_text_results_declare_no_output_schema(tmp_path) -> None:
    tools = await listed(tmp_path, "text")

    assert not any("outputSchema" in tool for tool in tools)


async def test_the_skill_names_the_live_tools() -> None:
    skill = (Path(__file__).parents[3] / "templates" / "pi" / "SKILL.md").read_text("utf-8")
    shown = re.findall(r"`([a-z]+_[a-z]+)\(([^)]*)\)`", skill)

    assert {name for name, _ in shown} == set(NAMES)
    for name, arguments in shown:
        known = next(each for each in DEFINITIONS if each.name == name).input_schema()["properties"]
        assert {each.strip() for each in arguments.split(",") if each.strip()} <= set(known)

"""Ten typical questions and their right calls, held to the live tools and to what the skill shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hermes_digup.mcp_server import DEFINITIONS
from hermes_digup.mcp_server.arguments import understand

HERE = Path(__file__).parent
TOOLS = {each.name: each for each in DEFINITIONS}
QUESTIONS: list[dict[str, Any]] = json.loads((HERE / "skill_questions.json").read_text("utf-8"))
SKILL = (HERE.parents[1] / "templates" / "pi" / "SKILL.md").read_text("utf-8")


def test_there_are_ten_and_every_tool_is_the_answer_to_one() -> None:
    assert len(QUESTIONS) == 10
    assert {each["tool"] for each in QUESTIONS} == set(TOOLS)


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda each: each["question"])
def test_the_right_call_is_valid_and_taken_as_it_is(asked: dict[str, Any]) -> None:
    tool = TOOLS[asked["tool"]]

    jsonschema.validate(asked["arguments"], tool.input_schema())
    understood = understand(tool, asked["arguments"])

    assert understood.notices == ()
    assert asked["arguments"].items() <= understood.arguments.model_dump().items()


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda each: each["question"])
def test_the_skill_shows_the_tool_with_these_arguments(asked: dict[str, Any]) -> None:
    shown = re.search(rf"`{asked['tool']}\(([^)]*)\)`", SKILL)

    assert shown
    assert asked["arguments"].keys() <= {each.strip() for each in shown[1].split(",")}

"""The role's three descriptions of its inputs agree, and the skill keeps Hermes's rules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
ROLES = ("hermes_digup", "preflight")
TOOLS = ("search_files", "search_code", "read_passage", "read_file", "browse_files", "index_status")


def options(role: str) -> dict[str, Any]:
    spec = yaml.safe_load((ROOT / "roles" / role / "meta/argument_specs.yml").read_text())
    return dict(spec["argument_specs"]["main"]["options"])


@pytest.mark.parametrize("role", ROLES)
def test_defaults_and_argument_specs_say_the_same(role: str) -> None:
    defaults = yaml.safe_load((ROOT / "roles" / role / "defaults/main.yml").read_text())
    assert defaults == {name: option["default"] for name, option in options(role).items()}


@pytest.mark.parametrize("role", ROLES)
def test_the_readme_has_a_row_for_every_input(role: str) -> None:
    text = (ROOT / "roles" / role / "README.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(options(role))


@pytest.mark.parametrize("role", ROLES)
def test_no_role_knows_a_group(role: str) -> None:
    files = [*(ROOT / "roles" / role).rglob("*.yml")]
    assert [file.name for file in files if re.search(r"groups\[|group_names", file.read_text())] == []


@pytest.fixture
def skill() -> str:
    return (ROOT / "templates/pi/SKILL.md").read_text(encoding="utf-8")


def test_the_skills_frontmatter_keeps_hermess_rules(skill: str) -> None:
    front = yaml.safe_load(skill.split("---")[1])
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", front["name"])
    assert len(front["description"]) <= 60  # all that the prompt shows
    assert skill.index("\n---\n") < 4000  # all that is read for the list of skills
    # Tool Search hides MCP tools from this check, and the skill would vanish.
    assert not {"requires_tools", "requires_toolsets"} & set(front["metadata"]["hermes"])


def test_the_skill_is_small(skill: str) -> None:
    assert len(skill) / 4 < 1000  # English text has about four characters per token


def test_the_skill_names_every_tool_and_both_forms_of_a_full_name(skill: str) -> None:
    assert [tool for tool in TOOLS if tool not in skill] == []
    assert "mcp__digup__search_files" in skill
    assert "mcp_digup_search_files" in skill


@pytest.mark.parametrize("word", ["weaker_match", "words_only", "stale"])
def test_the_skill_explains_what_results_say(skill: str, word: str) -> None:
    assert word in skill

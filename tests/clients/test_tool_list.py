"""The tool list in the eyes of a linter that grades tool definitions, and of those who pay for its tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.clients import environments
from tests.clients.serving import NAMES, lines_of, run

MOST_TOKENS = 1300
COUNT = """
import sys
from bpe_openai import get_encoding
print(len(get_encoding("o200k_base").encode(sys.stdin.read())))
"""


@pytest.fixture(scope="session")
def tdqs() -> Path:
    """The linter's `bin` folder."""
    return environments.python_client("tdqs")


@pytest.fixture(scope="session")
def tokenizer() -> Path:
    """The `bin` folder of an environment with the o200k vocabulary."""
    return environments.python_client("bpe-openai")


def test_the_linter_has_no_error_no_warning_and_no_note(tdqs, tmp_path, tool_list) -> None:
    dumped = tmp_path / "tools.json"
    dumped.write_text(json.dumps({"tools": tool_list}))

    lint = [tdqs / "tdqs", "lint", "--fail-on", "warning", "--file", dumped]
    done = run(*lint, environ={"HOME": str(tmp_path)})

    assert done.returncode == 0, lines_of(done)
    assert f"{len(NAMES)} tools" in done.stdout
    assert "0 errors, 0 warnings, 0 notes" in done.stdout


def test_the_list_without_output_schemas_costs_little(tokenizer, tmp_path, tool_list) -> None:
    done = run(
        tokenizer / "python", "-c", COUNT, environ={"HOME": str(tmp_path)}, given=without_outputs(tool_list)
    )

    assert done.returncode == 0, lines_of(done)
    assert 50 * len(NAMES) < int(done.stdout) <= MOST_TOKENS


def without_outputs(tools: list[dict[str, Any]]) -> str:
    shown = [{key: value for key, value in tool.items() if key != "outputSchema"} for tool in tools]
    return json.dumps(shown, separators=(",", ":"))

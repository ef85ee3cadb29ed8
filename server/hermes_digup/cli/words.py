"""What people type: the service's sentences name an agent's tools; here the commands stand instead."""

from __future__ import annotations

import re
from typing import TypeVar

from hermes_digup.service import Answer

COMMAND_OF = {
    "search_files": "hermes-digup search",
    "search_code": "hermes-digup search --code",
    "read_passage": "hermes-digup read ID",
    "read_file": "hermes-digup read PATH",
    "browse_files": "hermes-digup browse",
    "index_status": "hermes-digup status",
}
# A word of its own, so that no path in a sentence is changed.
_TOOL = re.compile(rf"(?<![\w/.-])({'|'.join(COMMAND_OF)})(?![\w/-]|\.\w)")

AnAnswer = TypeVar("AnAnswer", bound=Answer)


def for_people(answer: AnAnswer) -> AnAnswer:
    """The answer with commands in its sentences instead of tools."""
    warnings = [each.model_copy(update={"message": _spoken(each.message)}) for each in answer.warnings]
    return answer.model_copy(update={"message": _spoken(answer.message), "warnings": warnings})


def from_home(path: str, home: str) -> str:
    """A path as it was typed: the shell has put this host's home folder in the place of the laptop's `~`."""
    if home.strip("/") and (path == home or path.startswith(home.rstrip("/") + "/")):
        return "~" + path[len(home.rstrip("/")) :]
    return path


def _spoken(sentence: str) -> str:
    return _TOOL.sub(lambda tool: COMMAND_OF[tool[1]], sentence)

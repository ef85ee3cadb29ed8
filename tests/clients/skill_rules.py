"""Run by Hermes's own Python: holds a skill folder to Hermes's rules, and prints what breaks them as JSON.

Usage: skill_rules.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from agent.skill_utils import parse_frontmatter
from tools import skill_manager_tool as rules
from tools.skills_guard import scan_skill

SHOWN_CHARS = 60


def faults(folder: Path) -> list[str]:
    text = (folder / "SKILL.md").read_text(encoding="utf-8")
    front, _ = parse_frontmatter(text)
    name, description = str(front.get("name", "")), str(front.get("description", "")).strip()
    found = [
        rules._validate_frontmatter(text),
        rules._validate_name(name),
        rules._validate_content_size(text),
    ]
    if name != folder.name:
        found.append(f"the name {name} differs from the folder {folder.name}")
    if len(description) > SHOWN_CHARS:
        found.append(f"the description has {len(description)} characters, and {SHOWN_CHARS} are shown")
    verdict = scan_skill(folder, source="community").verdict
    if verdict != "safe":
        found.append(f"the security scan says {verdict}")
    return [each for each in found if each]


if __name__ == "__main__":
    print(json.dumps(faults(Path(sys.argv[1]))))

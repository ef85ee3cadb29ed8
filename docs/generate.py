"""The generated parts of the documents: the variables of each role, and the settings of the program.

python docs/generate.py            writes them anew (make docs)
python docs/generate.py --check    says which are not up to date, and fails if any
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

from hermes_digup.settings.model import Settings

ROOT = Path(__file__).resolve().parents[1]
_SPECS = "roles/*/meta/argument_specs.yml"
_BEGIN = "<!-- made by `make docs`: edit the source, not this table -->\n"
_END = "<!-- end -->"


def variables(role: Path) -> str:
    """A table of the role's variables: name, default, meaning."""
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, option in specs["argument_specs"]["main"]["options"].items():
        rows.append(f"| `{name}` | {_default(defaults.get(name))} | {_meaning(option)} |")
    return "\n".join(rows) + "\n"


def _default(value: object) -> str:
    if isinstance(value, str) and "{{" in value:
        return "worked out"
    if value in ("", [], {}, 0) and value is not False:
        return "none" if value != 0 else "`0`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _meaning(option: dict[str, Any]) -> str:
    text = option["description"]
    text = " ".join(text) if isinstance(text, list) else text
    text = re.sub(r"C\((.*?)\)", r"`\1`", text).replace("|", "\\|")
    choices = ", ".join(f"`{choice}`" for choice in option.get("choices", []))
    return f"{text} ({choices})" if choices else text


def settings() -> str:
    """A table of every key of config.env: name, default, meaning."""
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for field in Settings.model_fields.values():
        if field.alias == "DIGUP_SOURCES_DIR":
            rows.append(f"| `{field.alias}` | `~/.local/share/hermes-digup/sources` | {field.description} |")
        elif field.alias:
            default = "none" if field.default in (None, ()) else f"`{field.default}`"
            rows.append(f"| `{field.alias}` | {default} | {field.description} |")
    return "\n".join(rows) + "\n"


def stale(write: bool) -> list[str]:
    """Documents whose table is not what the code says; with `write` they are put right."""
    tables = {path.parents[1] / "README.md": variables(path.parents[1]) for path in ROOT.glob(_SPECS)}
    tables[ROOT / "docs" / "settings.md"] = settings()
    found = []
    for document, table in sorted(tables.items()):
        before = document.read_text(encoding="utf-8")
        head, begin, rest = before.partition(_BEGIN)
        _, end, tail = rest.partition(_END)
        if not end:
            raise SystemExit(f"{document} has no place for its table: {_BEGIN.strip()} ... {_END}")
        after = head + begin + table + end + tail
        if after != before:
            found.append(str(document.relative_to(ROOT)))
            if write:
                document.write_text(after, encoding="utf-8")
    return found


def main() -> int:
    write = sys.argv[1:] != ["--check"]
    found = stale(write)
    for name in found:
        print(f"{name}: {'written' if write else 'not up to date; run: make docs'}")
    return 1 if found and not write else 0


if __name__ == "__main__":
    sys.exit(main())

"""A report that may be shown to strangers: what doctor found, without names, addresses, folders."""

from __future__ import annotations

import re
from typing import Any

_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){3,7}\b")
_TAILNET = re.compile(r"\b[\w.-]+\.ts\.net\b")
_HOME = re.compile(r"/(?:Users|home)/[^/\s\"']+")
# Of a person's files only the kind stays: a folder's name may say more than its owner would.
_FOLDER = re.compile(r"~(?:/(?!\.local/|\.config/|Library/)[^\s,;:\"'()]+)+")


def redact(rows: list[dict[str, Any]], hostvars: Any) -> list[dict[str, Any]]:
    """The rows with each host as its place in the inventory: laptop-1, model-server-1, agent-1.

    Args:
        rows: What doctor found; every value is text.
        hostvars: Of all hosts, for their names, addresses and logins.
    """
    words: dict[str, str] = {}
    counts: dict[str, int] = {}
    for name in hostvars:
        of = hostvars[name]
        groups = of.get("group_names") or []
        kind = next((group for group in ("laptops", "model_servers", "agents") if group in groups), "hosts")
        counts[kind] = counts.get(kind, 0) + 1
        label = f"{kind[:-1].replace('_', '-')}-{counts[kind]}"
        words[name] = words[str(of.get("ansible_host", name))] = label
        if login := str(of.get("ansible_user", "")):
            words.setdefault(login, "user")
    longest_first = sorted(words, key=len, reverse=True)
    known = re.compile("|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in longest_first) or "(?!)")

    def cleaned(text: str) -> str:
        text = _HOME.sub("~", text)
        text = known.sub(lambda found: words[found.group()], text)
        text = _TAILNET.sub("HOST", text)
        return _FOLDER.sub("~/...", _ADDRESS.sub("ADDRESS", text))

    return [{key: cleaned(str(value)) for key, value in row.items()} for row in rows]


class FilterModule:
    """How Ansible finds it."""

    def filters(self) -> dict[str, Any]:
        return {"redact": redact}

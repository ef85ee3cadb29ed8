#!/usr/bin/python
"""Finds a Python on the agent's host that can run the server. Part of the Ansible run, changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: digup_python_info
short_description: Find a Python that can run hermes-digup
description:
  - Looks at the given Python, or else at those in the usual places, and returns the first that is new enough,
    has 64 bits, and whose SQLite has FTS5 with DigUp's tokenizer.
options:
  python:
    description: The only Python to consider, an absolute path. Empty means that one is looked for.
    type: str
    default: ""
  minimum:
    description: The oldest version that will do.
    type: str
    default: "3.10"
attributes:
  check_mode:
    description: Changes nothing.
    support: full
  diff_mode:
    description: Nothing to show.
    support: none
author: [hermes-digup]
"""

EXAMPLES = r"""
- name: Find a Python for the server
  digup_python_info:
  register: result
"""

RETURN = r"""
path: {description: The Python to use, or empty., type: str, returned: always}
version: {description: Its version., type: str, returned: always}
can_make_environments: {description: Whether its venv module brings pip., type: bool, returned: always}
problem: {description: One sentence when no Python will do, else empty., type: str, returned: always}
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

# Runs in the candidate, which may be any version of Python 3.
LOOK = """
import json, platform, sys
found = {"version": platform.python_version(), "bits": 64 if sys.maxsize > 2**32 else 32}
try:
    import sqlite3
    found["sqlite"] = sqlite3.sqlite_version
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(body, tokenize = \\"porter unicode61 remove_diacritics 2 "
               "categories 'L* N* Co M*'\\")")
    found["fts"] = True
except Exception as error:
    found["fts"] = False
    found["why"] = str(error)
try:
    import ensurepip, venv
    found["venv"] = True
except ImportError:
    found["venv"] = False
print(json.dumps(found))
"""

FOLDERS = ("/usr/bin", "/opt/homebrew/bin", "/usr/local/bin")


def candidates(python):
    """The Pythons to look at: the given one alone, else Ansible's own, the system's, newer ones first."""
    if python:
        return [python if Path(python).is_absolute() else shutil.which(python) or python]
    names = ["python3"] + ["python3.%d" % minor for minor in range(14, 9, -1)]
    found = [sys.executable] + [str(Path(folder, name)) for name in names for folder in FOLDERS]
    return [path for path in dict.fromkeys(found) if path and os.access(path, os.X_OK)]


def look(path):
    """What LOOK prints in the Python at `path`, or None when that is not a Python that runs."""
    try:
        done = subprocess.run(  # noqa: S603  # our own code, in a Python of this host
            [path, "-I", "-c", LOOK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60
        )
        return json.loads(done.stdout.decode()) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def number(version):
    """The first two parts of a version, as numbers."""
    return tuple(int(part) for part in version.split(".")[:2])


def objection(found, minimum):
    """Why this Python will not do, as the rest of a sentence about it, or an empty string."""
    if found is None:
        return "does not run"
    if number(found["version"]) < number(minimum):
        return "is %s, and %s or newer is needed" % (found["version"], minimum)
    if found["bits"] != 64:
        return "has 32 bits, and the packages exist for 64-bit systems only"
    if not found["fts"]:
        return "has an SQLite without what DigUp's index needs (%s)" % found.get("why", "no FTS5")
    return ""


def choose(looked, minimum):
    """Picks the first suitable Python, if possible one that can make environments.

    `looked` is a list of (path, what `look` returned). Returns (path or "", found or None, why none).
    """
    good = [(path, found) for path, found in looked if not objection(found, minimum)]
    if good:
        path, found = next(((p, f) for p, f in good if f["venv"]), good[0])
        return path, found, ""
    reasons = "; ".join("%s %s" % (path, objection(found, minimum)) for path, found in looked)
    return "", None, reasons or "no Python 3 was found in %s" % ", ".join(FOLDERS)


def main():
    module = AnsibleModule(
        argument_spec={
            "python": {"type": "str", "default": ""},
            "minimum": {"type": "str", "default": "3.10"},
        },
        supports_check_mode=True,
    )
    looked = [(path, look(path)) for path in candidates(module.params["python"])]
    path, found, problem = choose(looked, module.params["minimum"])
    found = found or {"version": "", "venv": False}
    module.exit_json(
        changed=False,
        path=path,
        version=found["version"],
        can_make_environments=found["venv"],
        problem=problem,
    )


if __name__ == "__main__":
    main()

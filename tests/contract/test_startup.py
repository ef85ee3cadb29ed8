"""The command starts light, and says in one sentence what is foreseeable."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

HEAVY = ("mcp", "numpy", "httpx", "rich", "pydantic")


def run(*arguments: str, home: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command line in a fresh interpreter, with nothing of this machine's settings."""
    return subprocess.run(
        [sys.executable, "-m", "hermes_digup", *arguments],
        env={"HOME": str(home), "PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


def test_version_is_the_packages_own(tmp_path) -> None:
    assert run("--version", home=tmp_path).stdout == f"hermes-digup {version('hermes-digup')}\n"


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_asking_for_little_loads_nothing_heavy(option: str) -> None:
    code = (
        "import sys\n"
        "from hermes_digup.cli import main\n"
        "try:\n"
        f"    main(['{option}'])\n"
        "except SystemExit:\n"
        "    pass\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["search", "boiler"], 3),
        (["read", "macbook:1:7f3a9c01de"], 3),
        (["read", "/a"], 3),
        (["browse"], 3),
        (["status"], 3),
        (["publish"], 3),
        (["publish", "--source", "../x"], 3),
        (["search"], 2),
        (["search", "x", "--limit", "0"], 2),
        (["search", "x", "--kind", "photo"], 2),
        (["search", "x", "--code", "--kind", "pdf"], 2),
        (["serve", "--http", "--host", "0.0.0.0"], 2),
        (["serve", "--http", "--host", "100.64.0.7"], 2),
        (["search", ""], 2),
    ],
)
def test_what_is_foreseeable_ends_in_a_sentence(tmp_path, arguments: list[str], exit_code: int) -> None:
    done = run(*arguments, home=tmp_path)

    assert done.returncode == exit_code, done
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stdout or done.stderr


@pytest.mark.parametrize("verb", ["serve", "search", "status", "doctor"])
def test_a_faulty_setting_ends_in_a_sentence_without_its_value(tmp_path, verb: str) -> None:
    more = ["x"] if verb == "search" else []

    done = run(verb, *more, home=tmp_path, DIGUP_EMBED_URL="ftp://sk-planted@host")

    assert done.returncode == 2
    assert done.stderr.startswith("hermes-digup: DIGUP_EMBED_URL cannot be used")
    assert "planted" not in done.stdout + done.stderr

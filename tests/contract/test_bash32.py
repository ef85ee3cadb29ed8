"""macOS ships bash 3.2 and BSD tools for ever: the laptop's script must use nothing newer and nothing GNU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "templates" / "laptop").glob("*.sh"))

# What bash learned after 3.2, and what its tools never had on a Mac. The name of a rule is the message.
TOO_NEW = {
    "new flags of declare (-A, -n, -u …)": r"\b(?:declare|local|typeset|readonly)\s+-[a-zA-Z]*[AnlugI]",
    "mapfile, readarray, coproc": r"\b(?:mapfile|readarray|coproc)\b",
    "case-changing expansions": r"\$\{\w+(?:\[[^]]*\])?(?:\^|,)",
    "operator expansions such as ${x@Q}": r"\$\{\w+(?:\[[^]]*\])?@[a-zA-Z]\}",
    "negative substring lengths or array indexes": r"\$\{\w+:(?![-+=?])[^}:]*:\s*-|\$\{\w+\[-",
    "|& and &>>": r"\|&|&>>",
    ";& and ;;&": r";;?&",
    "wait -n, wait -f, wait -p": r"\bwait\s+-[nfp]",
    "read -N, fractional read -t": r"\bread\s+(?:-\w+\s+)*-\w*N|\bread\s+(?:-\w+\s+)*-t\s*\d*\.",
    "printf of times": r"%\([^)]*\)T",
    "variables of newer bash": r"\b(?:EPOCHSECONDS|EPOCHREALTIME|BASHPID|SRANDOM|BASH_XTRACEFD|BASH_ARGV0)\b",
    "shopt options of newer bash": r"\b(?:globstar|lastpipe|inherit_errexit|localvar_inherit|autocd)\b",
    "[[ -v ]] and test -v": r"(?:\[\[?|\btest)\s+(?:!\s+)?-[vR]\s",
    "{fd} redirections": r"\{[a-z_]+\}[<>]",
    "\\u in $'…'": r"\$'[^']*\\[uU]",
    "brace ranges with a step": r"\{\w+\.\.\w+\.\.",
}
NOT_ON_A_MAC = {
    "programs that macOS lacks": r"(?<![\w./-])(?:timeout|flock|tac|realpath|readlink|setsid|gawk|jq)\b",
    "a Python that may open a dialog": r"\bpython3?\b",
    "long options of core tools": (
        r"\b(?:cat|cp|cut|date|grep|head|ln|ls|mkdir|mv|od|rm|sed|stat|tail|tr|wc|mktemp)\s[^|;&]*\s--[a-z]"
    ),
    "sed -i, -r and GNU escapes": r"\bsed\s+(?:-\w+\s+)*-\w*[ir]|\bsed\b[^|]*\\[+?|]",
    "grep -P": r"\bgrep\s+(?:-\w+\s+)*-\w*P",
    "head and tail with negative or + counts": r"\bhead\s+-[cn]\s*-",
    "ls --, echo -e": r"\becho\s+-[en]",
    "mktemp without a template": r"\bmktemp(?:\s+-d)?\s*\)",
}
GNU_ONLY = {
    "stat -c": r"\bstat\b[^|;]*\s-c\b",
    "date -d and nanoseconds": r"\bdate\b[^|;)]*\s-d\b|\bdate\b[^|;)]*%N",
    "sha256sum": r"\bsha256sum\b",
    "/proc": r"/proc/",
}


def code(script: Path) -> list[tuple[int, str]]:
    """The lines that run, without comments."""
    lines = enumerate(script.read_text().splitlines(), start=1)
    return [(number, re.sub(r"(?:^|(?<=\s))#(?!\{).*", "", line)) for number, line in lines]


def linux_branch(script: Path) -> set[int]:
    """Numbers of the lines in the one place that knows Linux."""
    inside, numbers = False, set()
    for number, line in code(script):
        if re.match(r'\s*if \[ "\$\(uname\)" = Darwin \]', line):
            inside = True
        elif inside and re.match(r"  fi\b", line):
            break
        if inside:
            numbers.add(number)
    return numbers


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
@pytest.mark.parametrize("rule", [*TOO_NEW, *NOT_ON_A_MAC])
def test_the_script_needs_nothing_newer_than_macos_has(script: Path, rule: str) -> None:
    pattern = re.compile({**TOO_NEW, **NOT_ON_A_MAC}[rule])
    assert [f"{number}: {line.strip()}" for number, line in code(script) if pattern.search(line)] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
@pytest.mark.parametrize("rule", GNU_ONLY)
def test_gnu_tools_stand_in_one_place_only(script: Path, rule: str) -> None:
    allowed = linux_branch(script)
    pattern = re.compile(GNU_ONLY[rule])
    found = [number for number, line in code(script) if pattern.search(line)]
    assert [number for number in found if number not in allowed] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_arrays_that_may_be_empty_are_not_expanded_bare(script: Path) -> None:
    """Under `set -u` bash 3.2 stops at an empty array. DATABASES always holds index.sqlite."""
    never_empty = {"DATABASES"}
    found = [
        f"{number}: {line.strip()}"
        for number, line in code(script)
        for name in re.findall(r"(?<!\+)\"\$\{(\w+)\[[@*]\]\}\"", line)
        if name not in never_empty
    ]
    assert found == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_case_stands_inside_a_command_substitution(script: Path) -> None:
    """bash 3.2 takes the `)` of a pattern for the end of `$(`."""
    text = "\n".join(line for _, line in code(script))
    assert re.findall(r"\$\((?:[^()]|\([^()]*\))*\bcase\b[^()]*\bin\b", text) == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_the_script_starts_apples_bash_and_calls_main_last(script: Path) -> None:
    lines = script.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("#!/bin/bash", 'main "$@"')


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("declare -A names", "new flags of declare (-A, -n, -u …)"),
        ("mapfile -t lines", "mapfile, readarray, coproc"),
        ("echo ${name,,}", "case-changing expansions"),
        ("cmd |& tee", "|& and &>>"),
        ("wait -n", "wait -n, wait -f, wait -p"),
        ("timeout 5 ssh", "programs that macOS lacks"),
        ("sed -i s/a/b/ f", "sed -i, -r and GNU escapes"),
    ],
)
def test_the_rules_find_what_they_are_for(line: str, rule: str) -> None:
    assert re.search({**TOO_NEW, **NOT_ON_A_MAC}[rule], line)


def test_the_script_says_the_version_of_the_project() -> None:
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    script = re.search(r"^readonly SCRIPT_VERSION=(\S+)$", SCRIPTS[0].read_text(), re.MULTILINE)
    assert project and script and project.group(1) == script.group(1)

"""Fills troubleshooting.md with every sentence by which something of ours stops or warns, as the code has it.

python docs/messages.py            writes the lists anew
python docs/messages.py --check    fails if they are not what the code says

A list stands between `<!-- says: PATHS -->` and `<!-- end -->`. PATHS are files, or folders with all files
below them but those that another list names. In a sentence "…" stands for what is only known when it is said.
`<!-- checks: PATHS -->` lists the names of doctor's rows.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "troubleshooting.md"
LIST = re.compile(r"(<!-- (says|checks): ([^>]+) -->\n)(?:.*?)(<!-- end -->)", re.DOTALL)
FEWEST_WORDS = 2
FEWEST_WORDS_OF_A_PART = 4  # of what has neither a beginning, a hole, nor a next step
# Texts that describe and do not tell: options, fields of answers, what goes into a log, patterns, SQL.
DESCRIBING_CALLS = frozenset(
    {"Field", "add_argument", "compile", "debug", "info", "warning", "execute", "fullmatch", "search"}
)
DESCRIBING_FILES = frozenset({"parser.py", "definitions.py", "answers.py", "texts.py", "printing.py"})
SAMPLES = frozenset({"QUESTION", "QUERY", "TEXTS"})
NO_SENTENCE = re.compile(
    r"\\|\(\?|^[#/~]|^[a-z_]*$|^\S+$|^(Next: \S+|hermes-digup) \S+( \S+)?$"
    r"|\| (query|text): |unicode61|\b(jpg|mp[34]|docx|screenshots)\b"
    r"|\b(SELECT|INSERT|FROM|PRAGMA|CREATE|JOIN|AND|typeof)\b|\b[fst]\.id\b"
)
HOLE = "…"
READ = (".py", ".yml")


@dataclass(frozen=True)
class Said:
    """One sentence; `fix` is the next step that is said with it, `check` the row of doctor it stands in."""

    what: str
    fix: str = ""
    check: str = ""

    def line(self) -> str:
        check = f"**{self.check}** " if self.check else ""
        return f"- {check}`{self.what}`" + (f" {self.fix}" if self.fix and self.fix != HOLE else "")


def said_by(path: Path) -> list[Said]:
    """What a file can say, in its order."""
    found = list(dict.fromkeys(each for each in _read(path) if _is_sentence(each)))
    elsewhere = {each.check for each in found} | {each.what for each in found if each.fix}
    fixes = "\n".join(each.fix for each in found)
    return [
        each
        for each in found
        if each.fix or each.check or (each.what not in elsewhere and each.what not in fixes)
    ]


def checks_of(path: Path) -> list[str]:
    """The names of doctor's rows that a file makes, in their order."""
    return list(dict.fromkeys(each.check for each in _read(path) if _words(each.check)))


@cache
def _read(path: Path) -> tuple[Said, ...]:
    text = path.read_text("utf-8")
    if path.name in DESCRIBING_FILES:
        return ()
    if path.suffix == ".py":
        return tuple(PythonFile(text).said())
    return tuple(_by_ansible(yaml.safe_load(text)) if path.suffix == ".yml" else _by_shell(text))


def _is_sentence(said: Said) -> bool:
    if NO_SENTENCE.search(said.what):
        return False
    stands_alone = said.fix or HOLE in said.what or said.what[:1].isupper()
    least = FEWEST_WORDS if stands_alone else FEWEST_WORDS_OF_A_PART
    if said.check:
        return said.what != HOLE
    return _words(said.what) >= least


def _words(text: str) -> int:
    return len(re.findall(r"[A-Za-z]{2,}", text))


def _tidy(text: str) -> str:
    text = re.sub(r"\{\d[^}]*\}|%[rs]", HOLE, " ".join(text.replace("`", "'").split()))
    return re.sub(rf"{HOLE}[\s:]*(?={HOLE})", "", text).strip().rstrip(".,:; ")


class PythonFile:
    """The faults of a module (`…Error("…", fix="…")`), doctor's rows, and every other sentence."""

    def __init__(self, text: str) -> None:
        self._tree = ast.parse(text)
        self._known: dict[str, ast.expr] = {}
        self._helpers: dict[str, list[str]] = {}
        self._done: set[int] = set()

    def said(self) -> Iterator[Said]:
        self._known = {**self._imported(), **dict(self._assigned(self._tree.body))}
        self._helpers = {
            each.name: [argument.arg for argument in each.args.args if argument.arg != "self"]
            for each in ast.walk(self._tree)
            if isinstance(each, ast.FunctionDef)
        }
        yield from self._of(self._tree, self._known)

    def _of(self, node: ast.AST, known: dict[str, ast.expr]) -> Iterator[Said]:
        for child in ast.iter_child_nodes(node):
            inner = known
            if isinstance(child, ast.FunctionDef):
                inner = {**known, **dict(self._assigned(ast.walk(child)))}
            yield from self._here(child, inner)
            yield from self._of(child, inner)

    def _here(self, node: ast.AST, known: dict[str, ast.expr]) -> Iterator[Said]:
        if isinstance(node, ast.Call):
            named = {each.arg: each.value for each in node.keywords if each.arg}
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in self._helpers:
                named = {**dict(zip(self._helpers[name], node.args, strict=False)), **named}
            what = node.args[0] if name.endswith("Error") and node.args else named.get("what")
            if name in DESCRIBING_CALLS:
                self._done.update(id(each) for each in ast.walk(node))
            elif name == "Row":
                self._done.update(id(each) for each in ast.walk(node))
                yield from self._row(node, known)
            elif what is not None:
                self._done.update(
                    id(each) for part in (what, named.get("fix")) if part for each in ast.walk(part)
                )
                fix = self._text(named.get("fix"), known)
                yield from (Said(_tidy(each), fix) for each in self._texts(what, known))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            self._done.add(id(node.value))
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in SAMPLES:
            self._done.update(id(each) for each in ast.walk(node))
        if id(node) not in self._done and isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
            self._done.update(id(each) for each in ast.walk(node))
            yield from (
                Said(_tidy(each))
                for each in self._texts(node, known)
                if "\n" not in each and _words(each) >= 3
            )

    def _row(self, node: ast.Call, known: dict[str, ast.expr]) -> Iterator[Said]:
        check, state, detail, fix = [*node.args, *[ast.Constant("")] * 3][:4]
        is_fine = self._text(state, known) == "ok"
        for each in [HOLE] if is_fine else self._texts(detail, known):
            for name in self._texts(check, known):
                yield Said(_tidy(each) or HOLE, self._text(fix, known), _tidy(name))

    def _text(self, node: ast.expr | None, known: dict[str, ast.expr]) -> str:
        return _tidy(next(self._texts(node, known), "")) if node is not None else ""

    def _texts(self, node: ast.expr, known: dict[str, ast.expr]) -> Iterator[str]:
        """Each text that an expression may come to."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            texts = [""]
            for part in node.values:
                ends = [part.value] if isinstance(part, ast.Constant) else list(self._in_hole(part, known))
                texts = [text + str(end) for text in texts for end in ends]
            yield from texts
        elif isinstance(node, ast.IfExp):
            yield from self._texts(node.body, known)
            yield from self._texts(node.orelse, known)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            for left in self._texts(node.left, known):
                yield from (left + right for right in self._texts(node.right, known))
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"
        ):
            yield from (re.sub(r"\{[^}]*\}", HOLE, each) for each in self._texts(node.func.value, known))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            yield from (re.sub(r"%[a-z]", HOLE, each) for each in self._texts(node.left, known))
        elif isinstance(node, ast.Name) and node.id in known:
            yield from self._texts(known[node.id], {})
        else:
            yield HOLE

    def _in_hole(self, part: ast.expr, known: dict[str, ast.expr]) -> Iterator[str]:
        """A constant of the module, and a choice between two texts, as they are said; else a hole."""
        value = part.value if isinstance(part, ast.FormattedValue) else part
        if isinstance(value, ast.IfExp) and all(
            isinstance(each, ast.Constant) and each.value for each in (value.body, value.orelse)
        ):
            yield from self._texts(value, known)
            return
        if isinstance(value, ast.Name) and value.id.isupper() and value.id in known:
            yield from self._texts(known[value.id], {})
        else:
            yield HOLE

    def _imported(self) -> dict[str, ast.expr]:
        """The constants of our other modules that this one uses."""
        found: dict[str, ast.expr] = {}
        for node in self._tree.body:
            path = ROOT / "server" / f"{(getattr(node, 'module', '') or '').replace('.', '/')}.py"
            if isinstance(node, ast.ImportFrom) and path.is_file():
                there = dict(self._assigned(ast.parse(path.read_text("utf-8")).body))
                found.update({each.name: there[each.name] for each in node.names if each.name in there})
        return found

    def _assigned(self, nodes: Any) -> Iterator[tuple[str, ast.expr]]:
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    yield name, value
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                    yield from zip((getattr(each, "id", "") for each in names), values, strict=False)


def _by_shell(script: str) -> Iterator[Said]:
    """The words after fail, say, refuse and note, and what is printed as a sentence."""
    for said in re.findall(r'(?:\b(?:fail|say) \d+|\b(?:refuse|note)) "((?:[^"\\]|\\.)*)"', script):
        yield Said(_tidy(re.sub(r"\$\(.*$|\$\{[^}]*\}|\$\w+", HOLE, said.replace('\\"', '"'))))
    for said in re.findall(r"printf '(?:[\w-]+: )?([^']*)\\n'", script):
        if _words(said) >= FEWEST_WORDS_OF_A_PART and "{" not in said:
            yield Said(_tidy(said))


def _by_ansible(node: object) -> Iterator[Said]:
    """The words of asserts and fails, and the rows that a role gives to doctor."""
    if isinstance(node, dict):
        stop = (node.get("ansible.builtin.assert") or {}).get("fail_msg") or (
            node.get("ansible.builtin.fail") or {}
        ).get("msg")
        if stop:
            yield Said(_tidy(re.sub(r"\{\{.*?\}\}|\{%.*?%\}", _words_within, stop, flags=re.DOTALL)))
        if "check" in node and "detail" in node:
            words = [
                each
                for each in re.findall(r"'((?:[^'\\]|\\.)*)'", str(node["detail"]))
                if len(each.split()) > 1
            ]
            yield Said(
                _tidy(" … ".join(words) or HOLE), check=_tidy(re.sub(r"\{\{.*?\}\}", HOLE, node["check"]))
            )
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _by_ansible(each)


def _words_within(hole: re.Match[str]) -> str:
    words = [each for each in re.findall(r"'([^'^]*)'", hole[0]) if _words(each) >= FEWEST_WORDS]
    return f" {HOLE} ".join(["", *words, ""]).strip() if words else HOLE


def listed(page: str) -> dict[str, list[Path]]:
    """The files of each list of sentences, by its PATHS. Raises: ValueError for a path that is not there."""
    named = {paths: paths.split() for _, kind, paths, _ in LIST.findall(page) if kind == "says"}
    alone = {ROOT / path for paths in named.values() for path in paths}
    return {
        paths: [
            path
            for start in starts
            for path in _below(ROOT / start)
            if path not in alone or path == ROOT / start
        ]
        for paths, starts in named.items()
    }


def _below(start: Path) -> list[Path]:
    if not start.exists():
        raise ValueError(f"{PAGE.name} names {start.relative_to(ROOT)}, which is not there")
    return [start] if start.is_file() else sorted(path for path in start.rglob("*.*") if path.suffix in READ)


def filled(page: str) -> str:
    """The page with each of its lists made anew."""
    files = listed(page)

    def made(match: re.Match[str]) -> str:
        head, kind, paths, end = match.groups()
        if kind == "checks":
            made_by = (path for start in paths.split() for path in _below(ROOT / start))
            lines = (f"`{name}`" for path in made_by for name in checks_of(path))
            return f"{head}\n{', '.join(dict.fromkeys(lines))}\n\n{end}"
        said = dict.fromkeys(each.line() for path in files[paths] for each in said_by(path))
        return "\n".join([head, *said, f"\n{end}"])

    return LIST.sub(made, page)


def main() -> int:
    before = PAGE.read_text("utf-8")
    after = filled(before)
    if "--check" in sys.argv:
        if after != before:
            print(f"{PAGE.name} does not list what the code says. Run: make docs")
        return int(after != before)
    PAGE.write_text(after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

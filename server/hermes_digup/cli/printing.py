"""Answers for people: aligned; on a terminal coloured and folded to its width, in a pipe each line whole.

Texts reach rich as plain text, never as its markup; they are harmless before they come here.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from hermes_digup.service import (
    Answer,
    BrowseAnswer,
    EmbeddingFacts,
    FileAnswer,
    FoundPassage,
    IndexFacts,
    PassageAnswer,
    SearchAnswer,
    SourceFacts,
    StatusAnswer,
    readable_size,
)

if TYPE_CHECKING:
    from hermes_digup.doctor import Report

WIDEST = 100
UNFOLDED = 20_000  # longer than any line of ours
STATE_STYLES = {"ok": "green", "warn": "yellow", "FAIL": "bold red", "skip": "dim"}


class Printer:
    """Prints to one console; by default to standard output, on a terminal at most 100 columns wide."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or _console()

    def search(self, answer: SearchAnswer) -> None:
        for number, hit in enumerate(answer.hits, start=1):
            self._hit(number, hit)
        self._notes(answer)

    def listing(self, answer: BrowseAnswer) -> None:
        machines = ", ".join(sorted({file.machine for file in answer.files}))
        # Aligned by hand: a table would fold the paths, which people copy.
        for file in answer.files:
            size = readable_size(file.size_bytes)
            where = f"   # on {file.machine}" if "," in machines else ""
            self._whole(f"{file.modified:<10}  {file.kind:<10}  {size:>9}  {file.path}{where}")
        if answer.files:
            more = f"; more with --offset {answer.next_offset}" if answer.next_offset is not None else ""
            self._line(f"{len(answer.files)} of {answer.total} files on {machines}{more}", "dim")
        self._notes(answer)

    def passage(self, answer: PassageAnswer) -> None:
        if answer.text:
            place = f", {answer.place}" if answer.place else ""
            self._whole(f"{answer.path}{place} (on {answer.machine})", "bold")
            self._whole(answer.text)
        if answer.text and (answer.more_before or answer.more_after):
            self._line("There is more around it: --context 1 to 3", "dim")
        self._notes(answer)

    def file(self, answer: FileAnswer) -> None:
        if answer.text:
            self._whole(f"{answer.path} (on {answer.machine})", "bold")
            self._whole(answer.text)
        if answer.next_offset is not None:
            self._line(f"More with --offset {answer.next_offset} (of {answer.total_chars} characters)", "dim")
        self._notes(answer)

    def status(self, answer: StatusAnswer) -> None:
        for source in answer.sources:
            self._source(source)
        if answer.embedding:
            self._embedding(answer.embedding)
        if answer.searches:
            self._line(answer.searches)
        self._notes(answer)

    def line(self, text: str) -> None:
        """One plain sentence."""
        self._line(text)

    def fields(self, values: Mapping[str, object]) -> None:
        """Names and values, aligned."""
        table = _plain_table()
        for name, value in values.items():
            table.add_row(Text(name, "dim"), Text(str(value)))
        self._unpadded(table)

    def report(self, report: Report) -> None:
        """Doctor's lines: state, check, detail; the fix below, with the whole width for the command in it."""
        longest = max((len(row.check) for row in report.rows), default=0)
        checks = min(longest, self._console.width // 2)  # else the detail has no room, and is cut
        for row in report.rows:
            table = _plain_table(4, checks)
            table.add_row(Text(row.state, STATE_STYLES[row.state]), Text(row.check), Text(row.detail))
            self._unpadded(table)
            if row.fix:
                self._unpadded(Padding(Text(f"fix: {row.fix}", "italic"), (0, 0, 0, 6), expand=False))
        self._line(report.verdict, "bold")

    def _hit(self, number: int, hit: FoundPassage) -> None:
        head = Text(f"{number}. ")
        head.append(hit.path, "bold")
        head.append(f"  {hit.place}" if hit.place else "")
        head.append(f"  line {hit.line}" if hit.line is not None else "")
        self._console.print(head, soft_wrap=True)
        facts = [hit.kind, hit.modified, readable_size(hit.size_bytes), f"on {hit.machine}", _why(hit)]
        facts += ["weaker match"] if hit.weaker_match else []
        self._below(Text(" · ".join(each for each in facts if each), "dim"))
        if hit.excerpt:
            self._below(_marked(hit.excerpt))
        self._whole(f"   {_open_line(hit)}", "cyan")
        self._whole(f"   id {hit.segment_id}", "dim")

    def _source(self, source: SourceFacts) -> None:
        if not source.usable:
            self._line(f"{source.machine}: not in use", "bold yellow")
            self._below(Text(source.problem or ""))
            return
        age = f", {source.age} ago" if source.age else ""
        self._line(f"{source.machine}: synced {source.synced or 'never'}{age}", "bold")
        if source.problem:
            self._below(Text(f"a newer copy is refused: {source.problem}", "yellow"))
        if source.arriving:
            self._below(Text(f"a newer copy is on its way: {source.arriving}", "dim"))
        for name, facts in (("files", source.files), ("code", source.code)):
            self._below(_index(name, facts))

    def _embedding(self, facts: EmbeddingFacts) -> None:
        words = {
            "not_set": "none set",
            "ok": f"{facts.url} answers in {facts.answer_ms} ms with {facts.model}",
            "failing": f"failing: {facts.problem}",
        }
        self._line(f"model server: {words[facts.state]}")

    def _notes(self, answer: Answer) -> None:
        if answer.message:
            self._line(answer.message, "yellow" if answer.status != "ok" else "")
        for notice in answer.warnings:
            # A command is a new process: to it, every fault of the model server has just begun.
            since = f" (since {notice.since})" if notice.since and notice.code != "words_only" else ""
            self._line(f"note: {notice.message}{since}", "yellow")

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style))

    def _whole(self, text: str, style: str = "") -> None:
        """A path or a passage as it is: its lines are not folded, as people copy them."""
        self._console.print(Text(text, style), soft_wrap=True)

    def _below(self, text: Text) -> None:
        self._unpadded(Padding(text, (0, 0, 0, 3), expand=False))

    def _unpadded(self, content: RenderableType) -> None:
        """Prints without the blanks that fill lines up: they would be copied along."""
        for line in self._console.render_lines(content, pad=False):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
            self._console.print(Segments([*line, Segment.line()]))


def _console() -> Console:
    console = _OpenConsole(highlight=False, markup=False, emoji=False)
    console.width = min(console.width, WIDEST) if console.is_terminal else UNFOLDED
    return console


class _OpenConsole(Console):
    """A console that leaves it to the program what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _plain_table(first: int | None = None, second: int | None = None) -> Table:
    """A table without lines, whose cells are folded and never cut: what a person copies must be whole.

    Its first two columns are so wide if that is given.
    """
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for width in (first, second, None):
        table.add_column(overflow="fold", width=width)
    return table


def _marked(excerpt: str) -> Text:
    """The excerpt; what stands in « » also bold."""
    text = Text(excerpt)
    text.highlight_regex(r"«[^«»]*»", "bold")
    return text


def _why(hit: FoundPassage) -> str:
    meaning = f"meaning {hit.z:.1f}" if hit.z is not None else ""
    words = f"words {round(hit.words_found * 100)} %" if hit.words_found else ""
    return ", ".join(each for each in (meaning, words) if each)


def _open_line(hit: FoundPassage) -> str:
    """A line to paste on the machine the file is on; none for a name that had to be escaped to be shown."""
    if "\\u" in hit.path.lower():
        return f"(on {hit.machine}; its name holds signs that cannot be pasted)"
    return f"open -R {shlex.quote(hit.path)}   # on {hit.machine}"


def _index(name: str, facts: IndexFacts | None) -> Text:
    if facts is None:
        return Text(f"{name}: off", "dim")
    kinds = ", ".join(f"{count} {kind}" for kind, count in facts.by_kind.items())
    waiting = _states(list(facts.by_state.items()))
    return Text(
        f"{name}: {facts.files} ({kinds}); schema {facts.schema_version}, {facts.vectors} vectors "
        f"({facts.vectors_from}, compared by {facts.scored_by}){waiting}"
    )


def _states(states: Sequence[tuple[str, int]]) -> str:
    others = ", ".join(f"{count} {state}" for state, count in states if state != "done")
    return f"; {others}" if others else ""

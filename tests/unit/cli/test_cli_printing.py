"""What a person sees in a terminal of 80 columns: nothing that is copied is folded."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hermes_digup.cli.printing import Printer
from hermes_digup.doctor import Report, Row
from hermes_digup.service import FileAnswer, PassageAnswer

PATH = "/Users/anna/Documents/Flat/Lease agreement Harbour Street 14, with all its annexes.pdf"
FIX = "Wake the laptop, then: ansible-playbook playbooks/sync_now.yml"


def terminal() -> tuple[Printer, io.StringIO]:
    told = io.StringIO()
    return Printer(Console(file=told, width=80, highlight=False, markup=False, emoji=False)), told


def test_the_path_above_a_text_is_whole() -> None:
    printer, told = terminal()
    printer.passage(PassageAnswer(status="ok", path=PATH, place="page 3", machine="macbook", text="Animals."))
    printer.file(FileAnswer(status="ok", path=PATH, machine="macbook", text="Animals."))
    assert told.getvalue().splitlines() == [
        f"{PATH}, page 3 (on macbook)",
        "Animals.",
        f"{PATH} (on macbook)",
        "Animals.",
    ]


@pytest.mark.parametrize("length", [1, 23, 60, 100])
def test_no_word_of_a_detail_is_lost_beside_a_long_name(length: int) -> None:
    printer, told = terminal()
    detail = "match: mean cosine 1.0000 (lowest 0.9981), 10 passages of 10 files"
    printer.report(Report((Row(f"query vectors, {'m' * length}", "ok", detail), Row("copy", "ok", detail))))
    for word in detail.split():
        assert told.getvalue().count(word) == 2 * detail.count(word), told.getvalue()
    assert told.getvalue().count("m" * min(length, 20)) >= 1


def test_the_command_that_mends_is_whole_and_details_are_folded_below_each_other() -> None:
    printer, told = terminal()
    sentence = "nothing listens at this address, as it seems (http://127.0.0.1:8000)"
    printer.report(
        Report((Row("query vectors, macbook, code", "skip", "none"), Row("copy", "warn", sentence, FIX)))
    )
    assert told.getvalue().splitlines() == [
        "skip  query vectors, macbook, code  none",
        "warn  copy                          nothing listens at this address, as it seems",
        "                                    (http://127.0.0.1:8000)",
        f"      fix: {FIX}",
        "1 of 2 checks warned, none failed",
    ]

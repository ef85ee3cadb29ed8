"""What the demo asks about the samples, and what must come first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """One search. `first` ends the path of the right file, `segment` and `place` say where in it."""

    about: str
    text: str
    first: str
    segment: str
    place: int
    code: bool = False
    needs_model: bool = True


QUESTIONS = (
    Question(
        "By meaning: the lease knows no apartment, and only its page 3 is about animals",
        "can I keep a dog in my apartment",
        "Documents/Flat/Lease agreement Harbour Street 14.pdf",
        "page",
        3,
    ),
    Question(
        "In another language: an English question finds an Arabic report",
        "knee injury after running",
        "Documents/Health/تقرير الركبة.docx",
        "chunk",
        1,
    ),
    Question(
        "By exact words: one invoice number among others that look like it",
        "INV-2026-0042",
        "Documents/Invoices/2026/Invoice Brightwater Design.pdf",
        "page",
        1,
        needs_model=False,
    ),
    Question(
        "To the page: what to do is on page 4 of a manual",
        "how do I get limescale out of the espresso machine",
        "Documents/Manuals/Coffee machine manual.pdf",
        "page",
        4,
    ),
    Question(
        "In code: a function found by what it does",
        "wait longer after each failed attempt",
        "Code/tidewatch/tidewatch/retry.py",
        "lines",
        1,
        code=True,
    ),
)

WORDS_ONLY = Question(
    "By words alone: no model is needed for this one",
    "ferry from Piraeus to Naxos",
    "Documents/Travel/Greece 2025 notes.md",
    "chunk",
    1,
    needs_model=False,
)

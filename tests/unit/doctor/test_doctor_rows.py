"""Doctor's judgement: what a row says, and what the whole comes to."""

from __future__ import annotations

import numpy as np
import pytest

from hermes_digup.doctor import Report, Row
from hermes_digup.doctor.vectors import compared, embedded_text, verdict
from hermes_digup.records import File, Passage


def file(path: str, **info: str) -> File:
    return File(1, path, "doc", "done", 10, 0.0, info, None)


def passage(kind: str, text: str | None) -> Passage:
    return Passage(1, 1, kind, "text", 1.0, None, None, text)


@pytest.mark.parametrize(
    ("states", "verdict_text", "exit_code"),
    [
        (["ok", "skip"], "all good", 0),
        (["ok", "warn"], "1 of 2 checks warned, none failed", 0),
        (["FAIL", "warn", "ok"], "1 of 3 checks failed, 1 warned", 1),
        (["FAIL"], "1 of 1 checks failed", 1),
    ],
)
def test_the_verdict_and_the_exit_code_follow_the_worst_row(
    states, verdict_text: str, exit_code: int
) -> None:
    report = Report(tuple(Row("check", state, "detail") for state in states))

    assert (report.verdict, report.exit_code) == (verdict_text, exit_code)
    assert report.as_dict()["ok"] is (exit_code == 0)


@pytest.mark.parametrize(
    ("cosines", "state", "word"),
    [
        ([0.99, 0.985], "ok", "match"),
        ([0.98, 0.98], "ok", "match"),
        ([0.95, 0.93], "warn", "close"),
        ([0.999, 0.5], "FAIL", "mismatch"),
        ([0.0], "FAIL", "mismatch"),
    ],
)
def test_the_mean_cosine_decides(cosines: list[float], state: str, word: str) -> None:
    row = verdict(cosines, files=2)

    assert row.state == state
    assert row.detail.startswith(word)


def test_a_stored_vectors_rounding_does_not_count() -> None:
    made = np.random.default_rng(1).standard_normal(768).astype(np.float32)
    made /= np.linalg.norm(made)

    assert compared([made.astype(np.float16).astype(np.float32)], [made])[0] > 0.9999


@pytest.mark.parametrize(
    ("path", "kind", "text", "title"),
    [
        ("/Users/ana/Notes/Garden diary.md", "chunk", "words", "Garden diary"),
        ("/Users/ana/.profile", "chunk", "words", ".profile"),
        ("/Users/ana/archive.tar.gz", "chunk", "words", "archive.tar"),
        ("/Users/ana/Lease.pdf", "page", "words", "Lease"),
    ],
)
def test_a_document_is_embedded_under_its_name_without_ending(
    path: str, kind: str, text: str, title: str
) -> None:
    assert embedded_text(passage(kind, text), file(path), is_code=False) == f"title: {title} | text: {text}"


def test_code_is_embedded_under_its_path_from_the_repository_on() -> None:
    inside = file("/Users/ana/Code/billing/payments/retry.py", repo="/Users/ana/Code/billing")
    outside = file("/Users/ana/Code/scripts/backup.sh")

    assert (
        embedded_text(passage("lines", "x"), inside, is_code=True)
        == "title: billing/payments/retry.py | text: x"
    )
    assert embedded_text(passage("lines", "x"), outside, is_code=True) == "title: scripts/backup.sh | text: x"


def test_what_has_no_text_cannot_be_embedded_again() -> None:
    assert embedded_text(passage("page", None), file("/a.pdf"), is_code=False) is None


def test_a_page_is_embedded_up_to_its_four_thousandth_character() -> None:
    long = embedded_text(passage("page", "x" * 5000), file("/a.pdf"), is_code=False)

    assert long == "title: a | text: " + "x" * 4000

"""The ranking equals what DigUp's own code computed, whichever way an index comes to us."""

from __future__ import annotations

import subprocess
import sys
import threading
from importlib.util import find_spec

import pytest
from tests.golden import run
from tests.golden.run import HERE, golden_files, judge

from hermes_digup.index import postings

FILES = golden_files(HERE)
NEWEST = "pysqlite3"


@pytest.mark.parametrize("path", FILES, ids=[path.name.partition(".")[0] for path in FILES])
def test_every_case_agrees_with_digup(path):
    verdict = judge(path)

    assert verdict.mismatches == 0, str(verdict)
    assert verdict.cases > 0


@pytest.mark.parametrize("path", FILES, ids=[path.name.partition(".")[0] for path in FILES])
def test_every_case_agrees_when_its_words_were_asked_for_before(path, monkeypatch):
    answer = run._answer

    def third_answer(database, query):
        for _ in range(2):
            answer(database, query)
            for thread in threading.enumerate():
                if thread.name == "words":
                    thread.join()
        return answer(database, query)

    monkeypatch.setattr(run, "_answer", third_answer)
    monkeypatch.setattr(postings, "_FEW_ROWS", 3)  # of these small indexes

    assert judge(path, ways=("opened",)).mismatches == 0


@pytest.mark.timeout(1200)
def test_every_case_agrees_under_the_newest_sqlite_too():
    if find_spec(NEWEST) is None:
        pytest.skip(f"{NEWEST} is missing: pip install {NEWEST} (wheels for some platforms only)")
    command = [sys.executable, run.__file__, "--sqlite", NEWEST]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("SQLite ")
    assert done.stdout.count(" 0 mismatches ") == len(FILES)


def test_there_are_golden_files():
    assert FILES

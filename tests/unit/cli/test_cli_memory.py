"""A server gives the memory of its searches back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# As a search: a few large blocks, and small ones between that stay. Here in a thread, as searches are.
SEARCHES = """
import re, sys, threading
from pathlib import Path
import numpy
from hermes_digup.cli.memory import give_memory_back

def mib_taken():
    return int(re.search(r"VmData:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10

def search():
    numpy.ones(1_000_000)
    large = []
    for _ in range(100):
        large.append(numpy.ones(100_000))
        small.append(numpy.ones(1_000))

if sys.argv[1] == "serving":
    give_memory_back()
before, small = mib_taken(), []
thread = threading.Thread(target=search)
thread.start()
thread.join()
print(mib_taken() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's accounts of a process")
def test_what_searches_took_goes_back_to_the_system():
    def mib_kept(how: str) -> int:
        return int(subprocess.check_output([sys.executable, "-c", SEARCHES, how], text=True))

    assert mib_kept("serving") < 20 < mib_kept("as it is")

"""Makes Python say Darwin, in this process only: what it starts sees the Linux that is really there."""

from __future__ import annotations

import os

os.environ.pop("PYTHONPATH", None)
_real = os.uname()
_kernel = "Darwin Kernel Version 24.6.0: pretended"


def _uname() -> os.uname_result:
    return os.uname_result(("Darwin", _real.nodename, "24.6.0", _kernel, "arm64"))


os.uname = _uname

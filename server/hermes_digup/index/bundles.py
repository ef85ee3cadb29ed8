"""Many numbers as one value of SQLite: a row or a parameter for each costs far more than SQLite does."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def bundle(numbers: Collection[int]) -> str:
    """Numbers as one parameter for `json_each`, so that the SQL stays the same and prepared."""
    return json.dumps(list(numbers))


def unbundled(text: str | None) -> NDArray[np.int64]:
    """Numbers that `group_concat` made one text of."""
    return np.fromstring(text, np.int64, sep=",") if text else np.empty(0, np.int64)

"""Is this answer what it should be: one vector for each text, in the right order and size, of numbers?

A wrong vector ranks wrongly without a sign, so whatever looks odd is refused, and nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hermes_digup.errors import BadVectorsError, WrongModelError
from hermes_digup.records import DIMENSIONS

SERVE_GEMMA = "Serve EmbeddingGemma 2 and name it in DIGUP_EMBED_MODEL."
RESTART = "Restart the model server; if that does not help, update it."


def openai_rows(answer: object, count: int) -> list[object]:
    """The vectors of an OpenAI answer in the order of the texts, by their `index`; still unchecked.

    Raises: BadVectorsError when they are too few, too many, or cannot be told apart.
    """
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise BadVectorsError("The model server answered without vectors", fix=RESTART)
    _counted(data, count)
    places = [row.get("index") for row in data]
    if count == 1 and places[0] is None:
        return [data[0].get("embedding")]
    if any(type(place) is not int for place in places) or sorted(places) != list(range(count)):
        raise BadVectorsError("The model server's vectors cannot be matched to their texts", fix=RESTART)
    return [
        row.get("embedding") for _, row in sorted(zip(places, data, strict=True), key=lambda pair: pair[0])
    ]


def ollama_rows(answer: object, count: int) -> list[object]:
    """The vectors of an Ollama answer, which come in the order of the texts; still unchecked.

    Raises: BadVectorsError when they are too few or too many.
    """
    rows = answer.get("embeddings") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise BadVectorsError("The model server answered without vectors", fix=RESTART)
    _counted(rows, count)
    return rows


def checked(rows: Sequence[object]) -> NDArray[np.float32]:
    """Rows of unit length. Shapes: n rows in, (n, 768) float32 out.

    Raises: WrongModelError for vectors of another size, BadVectorsError for what is no vector.
    """
    whole = np.empty((len(rows), DIMENSIONS), dtype=np.float32)
    for place, row in enumerate(rows):
        whole[place] = _unit(_numbers(row))
    return whole


def _counted(rows: Sequence[object], count: int) -> None:
    if len(rows) != count:
        raise BadVectorsError(
            f"The model server gave {len(rows)} vectors for {count} {'text' if count == 1 else 'texts'}",
            fix=RESTART,
        )


def _numbers(row: object) -> list[float]:
    if not isinstance(row, list):
        raise BadVectorsError("The model server gave something that is not a list of numbers", fix=RESTART)
    if row and isinstance(row[0], list):
        raise BadVectorsError(
            "The model server gave one vector for each token instead of one for the text",
            fix="Switch pooling on for this model there.",
        )
    # Exact types: a bool is an int to Python, and no number to us.
    if any(type(number) is not float and type(number) is not int for number in row):
        raise BadVectorsError("The model server gave a vector with gaps (null or text)", fix=RESTART)
    if len(row) != DIMENSIONS:
        raise WrongModelError(
            f"The model server's vectors have {len(row)} numbers, and DigUp's have {DIMENSIONS}",
            fix=SERVE_GEMMA,
        )
    return row


def _unit(numbers: list[float]) -> NDArray[np.float32]:
    try:
        vector = np.array(numbers, dtype=np.float64)
    except OverflowError:  # an integer beyond all floats
        vector = np.full(DIMENSIONS, np.inf)
    largest = float(np.abs(vector).max())
    if not np.isfinite(largest):
        raise BadVectorsError("The model server gave a vector with numbers that are not finite", fix=RESTART)
    if largest == 0.0:
        raise BadVectorsError("The model server gave a vector of zeros", fix=RESTART)
    vector /= largest  # so that squaring neither overflows nor vanishes
    unit: NDArray[np.float32] = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit

"""How the oMLX double answers /v1/embeddings: as the real server does, or with a fault that was seen."""

from __future__ import annotations

import base64
import functools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.doubles import model
from tests.doubles.omlx_downloads import Refused
from tests.doubles.omlx_state import State

# Faults that answer with another status: status, message.
STATUS_FAULTS: dict[str, tuple[int, str]] = {
    "unauthorized": (401, "Invalid API key"),
    "forbidden": (403, "This key may not use this model"),
    "not-an-embeddings-model": (400, "Model 'tiny-chat' is not an embedding model"),
    "load-failed": (409, "Model is unavailable after a previous load failure. Reload models to try again."),
    "too-long": (500, "input is too large to process"),
    "loading": (503, "Server is loading models"),
    "no-memory": (507, "Not enough memory to load the model"),
}
# Faults in the numbers of a 200 answer.
VECTOR_FAULTS = (
    "null", "nan", "infinity", "zeros", "texts", "booleans", "nested", "wrong-size", "one-number",
)  # fmt: skip
# Faults in the rows of a 200 answer.
ROW_FAULTS = ("reordered", "short", "no-rows", "same-index", "no-index", "index-too-high", "batch-differs")
# Faults of the transport or of the body as a whole.
BODY_FAULTS = (
    "slow",
    "drip",
    "spaces",
    "spaces-then-cut",
    "only-a-space",
    "not-json",
    "error-in-200",
    "huge",
    "redirect",
)
FAULTS = (*STATUS_FAULTS, *VECTOR_FAULTS, *ROW_FAULTS, *BODY_FAULTS)


@functools.cache
def real_model() -> model.Model:
    """The best model this machine has."""
    return model.SmallE5() if model.available() else model.HashedWords()


def fault_of(base: Path) -> str:
    """The fault that the file `double-fault` in the base folder asks for; empty for none."""
    try:
        return (base / "double-fault").read_text().strip()
    except FileNotFoundError:
        return ""


def answer(state: State, vectors: model.Model, asked: dict[str, Any], fault: str) -> dict[str, Any]:
    """The body of a 200 answer. Raises: Refused."""
    texts = _texts(asked)
    name = asked["model"]
    with state.lock:
        id = state.resolve(name)
        if state.type_of(id) != "embedding":
            raise Refused(400, f"Model '{name}' is not an embedding model")
        try:
            state.load(id)
        except Refused as refused:
            raise Refused(409, refused.detail) from refused
    if fault in STATUS_FAULTS:
        raise Refused(*STATUS_FAULTS[fault])
    rows = _sized(vectors.embed(texts), asked.get("dimensions"))
    if fault == "batch-differs" and len(texts) > 1:
        rows = np.roll(rows, 1, axis=1)
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": _number(row, asked.get("encoding_format"), fault),
        }
        for index, row in enumerate(rows)
    ]
    tokens = sum(len(text.split()) + 2 for text in texts)
    return {
        "object": "list",
        "data": _rows(data, fault),
        "model": name,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _texts(asked: dict[str, Any]) -> list[str]:
    given = [name for name in ("input", "items") if asked.get(name) is not None]
    if not isinstance(asked.get("model"), str) or len(given) != 1:
        raise Refused(422, "exactly one of input and items, and a model")
    if asked.get("encoding_format", "float") not in ("float", "base64"):
        raise Refused(422, "encoding_format must be float or base64")
    texts = asked[given[0]]
    texts = [texts] if isinstance(texts, str) else texts
    if given[0] == "items":
        texts = [item.get("text", "") for item in texts]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Refused(422, "input must be a string or a list of strings")
    if not texts:
        raise Refused(400, "Input cannot be empty")
    return texts


def _sized(rows: NDArray[np.float32], dimensions: Any) -> NDArray[np.float32]:
    if not isinstance(dimensions, int) or not 0 < dimensions < rows.shape[1]:
        return rows
    cut = rows[:, :dimensions]
    return cut / np.linalg.norm(cut, axis=1, keepdims=True)


def _number(row: NDArray[np.float32], form: str | None, fault: str) -> Any:
    if form == "base64" and fault not in VECTOR_FAULTS:
        return base64.b64encode(row.astype("<f4").tobytes()).decode()
    numbers: list[Any] = row.tolist()
    middle = {"null": None, "nan": float("nan"), "infinity": float("inf"), "texts": "0.5", "booleans": True}
    if fault in middle:
        numbers[len(numbers) // 2] = middle[fault]
    whole = {
        "zeros": [0.0] * len(numbers),
        "nested": [numbers, numbers],
        "wrong-size": [*numbers, *numbers[:256]],
        "one-number": 0.5,
    }
    return whole.get(fault, numbers)


def _rows(data: list[dict[str, Any]], fault: str) -> list[dict[str, Any]]:
    if fault == "reordered":
        return data[::-1]
    if fault == "short":
        return data[:-1]
    if fault == "no-rows":
        return []
    for row in data:
        if fault == "same-index":
            row["index"] = 0
        if fault == "index-too-high":
            row["index"] += 1
        if fault == "no-index":
            del row["index"]
    return data


def body(content: dict[str, Any], fault: str, slow_s: float) -> Iterator[bytes]:
    """The chunks of a 200 answer: a space first, as the real server sends it to keep the connection alive."""
    whole = json.dumps(content).encode()
    if fault == "slow":
        time.sleep(slow_s)
    yield b" "
    if fault in ("spaces", "spaces-then-cut", "drip"):
        for _ in range(int(slow_s / 0.1)):
            time.sleep(0.1)
            yield b" "
    endings = {
        "spaces-then-cut": whole[: len(whole) // 2],
        "only-a-space": b"",
        "not-json": b"<html><body>Bad gateway</body></html>",
        "error-in-200": json.dumps(
            {"error": {"message": "embedding failed", "type": "server_error"}}
        ).encode(),
    }
    if fault == "huge":
        for _ in range(1024):
            yield b"[0.0, 0.0, 0.0, 0.0]," * 3200
    yield endings.get(fault, whole)

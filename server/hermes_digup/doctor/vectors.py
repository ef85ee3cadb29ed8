"""Does the model server answer, and do its vectors lie in the same space as DigUp's?

The proof: passages that DigUp embedded are embedded again, exactly as DigUp wrote them, and compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hermes_digup.doctor.report import Row, brief
from hermes_digup.embedding import EmbeddingClient
from hermes_digup.errors import EmbeddingError
from hermes_digup.records import File, Passage
from hermes_digup.service import Corner, Opened, corners

if TYPE_CHECKING:
    from hermes_digup.records import Vector

SAMPLES = 12
MATCH, CLOSE = 0.98, 0.90
SAME = 0.999
PAGE_CHARS = 4000
QUESTION = "the newest letter about the heating"
SET_FIX = "Set DIGUP_EMBED_URL in config.env, or: ansible-playbook site.yml"
MODEL_FIX = "Serve google/embeddinggemma-2 unquantised: ansible-playbook site.yml --limit model_servers"


@dataclass(frozen=True, slots=True)
class Sample:
    """A stored passage: the text DigUp embedded, and the vector it got."""

    text: str
    vector: Vector
    file: int


def embedding_rows(client: EmbeddingClient | None, opened: Opened) -> Iterator[Row]:
    """The server's own row, then the proofs, which need its answer."""
    if client is None:
        yield Row("model server", "warn", "none set: searches go by words alone", SET_FIX)
        return
    try:
        yield _server_row(client)
    except EmbeddingError as error:
        detail = f"{error.what}" + (f" ({error.where})" if error.where else "")
        yield Row("model server", "FAIL", brief(f"{detail} [{error.code}]"), brief(error.fix))
        yield Row("query vectors", "skip", "no model server to ask")
        return
    for corner in corners(opened):
        yield from _proof_rows(client, corner)


def embedded_text(passage: Passage, file: File, *, is_code: bool) -> str | None:
    """What DigUp gave the model for this passage; None when the index does not tell.

    Source: the index format's notes on what was embedded. A PDF's own title is not stored, so for pages the
    file's name stands in.
    """
    if passage.text is None:
        return None
    if is_code:
        return f"title: {_title_of_code(file)} | text: {passage.text}"
    name = file.path.rsplit("/", 1)[-1]
    stem = name.rsplit(".", 1)[0] if "." in name.lstrip(".") else name
    text = passage.text[:PAGE_CHARS] if passage.kind == "page" else passage.text
    return f"title: {stem or 'none'} | text: {text}"


def compared(stored: Sequence[Vector], made: Sequence[Vector]) -> list[float]:
    """Cosines of stored vectors (half precision, nearly unit) with freshly made ones.

    Shapes: (768,) each, as many of one as of the other.
    """
    return [
        float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))
        for a, b in zip(stored, made, strict=True)
    ]


def verdict(cosines: Sequence[float], *, files: int) -> Row:
    """match, close or mismatch, by the mean: one odd passage proves nothing, as a file may be renamed."""
    mean = sum(cosines) / len(cosines)
    facts = f"mean cosine {mean:.4f} (lowest {min(cosines):.4f}), {len(cosines)} passages of {files} files"
    if mean >= MATCH:
        return Row("query vectors", "ok", f"match: {facts}")
    if mean >= CLOSE:
        return Row("query vectors", "warn", f"close: {facts}; ranks a little worse", MODEL_FIX)
    return Row("query vectors", "FAIL", f"mismatch: {facts}; another model answers", MODEL_FIX)


def _server_row(client: EmbeddingClient) -> Row:
    began = time.monotonic()
    client.query_vector(QUESTION, code=False)
    took_ms = (time.monotonic() - began) * 1000
    state = client.state()
    told = f"{state.url} answered in {took_ms:.0f} ms with {brief(state.model_used)}"
    if state.uses_other_model:
        told += f", as it has no {state.model_asked}"
        return Row("model server", "warn", told, "Set DIGUP_EMBED_MODEL to the name that it has.")
    return Row("model server", "ok", told)


def _proof_rows(client: EmbeddingClient, corner: Corner) -> Iterator[Row]:
    where = f"{corner.machine}{', code' if corner.database.is_code else ''}"
    samples = _samples(corner)
    if not samples:
        yield Row(
            f"query vectors, {where}", "skip", "no stored passage whose embedded text can be made again"
        )
        return
    try:
        made = client.embed([each.text for each in samples])
        alone = client.embed([samples[0].text])
    except EmbeddingError as error:
        yield Row(f"query vectors, {where}", "FAIL", brief(f"{error.what} [{error.code}]"), brief(error.fix))
        return
    row = verdict(
        compared([each.vector for each in samples], list(made)), files=len({each.file for each in samples})
    )
    yield Row(f"{row.check}, {where}", row.state, row.detail, row.fix)
    if len(samples) > 1:
        yield _batch_row(compared([made[0]], [alone[0]])[0], where)


def _samples(corner: Corner) -> list[Sample]:
    found = []
    for passage, file, vector in corner.database.samples(SAMPLES):
        text = embedded_text(passage, file, is_code=corner.database.is_code)
        if text is not None:
            found.append(Sample(text, vector, file.id))
    return found


def _batch_row(cosine: float, where: str) -> Row:
    name = f"single and batch, {where}"
    if cosine >= SAME:
        return Row(name, "ok", f"agree: cosine {cosine:.4f}")
    fix = "Update the model server; until then batches there are padded wrongly."
    return Row(name, "warn", f"a text alone and in a batch differ: cosine {cosine:.4f}", fix)


def _title_of_code(file: File) -> str:
    repo = file.info.get("repo", "").rstrip("/")
    if repo and file.path.startswith(repo + "/"):
        return file.path[len(repo.rsplit("/", 1)[0]) + 1 :]
    return "/".join(file.path.split("/")[-2:])

"""Which model of a server may stand in for EmbeddingGemma 2."""

from __future__ import annotations

import pytest

from hermes_digup.embedding.models import gemma_among


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (
            ["embeddinggemma-2-8bit", "someone/embeddinggemma-2-full-bf16"],
            "someone/embeddinggemma-2-full-bf16",
        ),
        (["embeddinggemma-2-q8_0", "embeddinggemma-2-4bit-dwq"], "embeddinggemma-2-q8_0"),
        (["embedding_gemma2:latest", "llama3:8b"], "embedding_gemma2:latest"),
        (["EmbeddingGemma-2", "embeddinggemma-2-mxfp8"], "EmbeddingGemma-2"),
        (["embeddinggemma-300m", "embeddinggemma:latest", "embeddinggemma-256", "gemma-2-9b"], None),
        ([], None),
    ],
)
def test_only_an_embeddinggemma_2_stands_in_and_an_unquantised_one_first(
    names: list[str], chosen: str | None
) -> None:
    assert gemma_among(names) == chosen
    assert gemma_among(reversed(names)) == chosen

"""A text becomes one checked vector: prompts, the model server's client, checks on its answers."""

from __future__ import annotations

from hermes_digup.embedding.client import EmbeddingClient, EmbeddingState
from hermes_digup.embedding.deadline import Deadline
from hermes_digup.embedding.prompts import query_prompt

__all__ = ["Deadline", "EmbeddingClient", "EmbeddingState", "query_prompt"]

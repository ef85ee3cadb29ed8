"""The words that DigUp puts in front of a query. The model was trained with them; no server adds them."""

from __future__ import annotations


def query_prompt(text: str, *, code: bool) -> str:
    """What is embedded for a query of the main or of the code index. Source: docs/ranking.md, "Meaning"."""
    task = "code retrieval" if code else "search result"
    return f"task: {task} | query: {text.strip()}"

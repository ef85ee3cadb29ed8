"""Text as DigUp sees it: three notions of character, normalising, and sets of characters."""

from __future__ import annotations


def unsplit_script(text: str) -> bool:
    """Whether a text is in a script that is written without spaces, so that its words are not found singly."""
    raise NotImplementedError

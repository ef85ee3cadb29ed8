"""Every fault that this program can name.

Faces (command line, MCP server, doctor) lay the three parts out in their own way, so a fault carries them
apart. What may happen on any day (nothing found, words only, an old id) is a value, not an error.
"""

from __future__ import annotations

from typing import ClassVar


class DigupError(Exception):
    """A fault that a person can act on: what happened, where, and the next step."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what, self.where, self.fix = what, where, fix
        super().__init__(what + (f" ({where})" if where else "") + "." + (f" {fix}" if fix else ""))


class SettingsError(DigupError):
    """A setting that is missing or cannot be understood."""

    exit_code = 2


class NoIndexError(DigupError):
    """There is nothing to search: no source, or none with a published copy."""

    exit_code = 3


class RefusedCopyError(DigupError):
    """Files that are not, or no longer, a sound DigUp index."""

    exit_code = 4


class DiskFullError(DigupError):
    """No room left to write what is needed."""

    exit_code = 5


class BusyError(DigupError):
    """Somebody else holds what is needed, for longer than the bounded wait."""

    exit_code = 6


class EmbeddingError(DigupError):
    """No usable query vector. Searches go on by words alone.

    `code` is the machine-readable cause that warnings and doctor show.
    """

    exit_code = 7
    code: ClassVar[str] = "embedding_failed"


class UnreachableError(EmbeddingError):
    """No model server answered in time."""

    code = "unreachable"


class LoadingError(EmbeddingError):
    """The model server is up and still loading its models."""

    code = "loading"


class RefusedKeyError(EmbeddingError):
    """The model server refused the key."""

    code = "key_refused"


class WrongModelError(EmbeddingError):
    """The model server has no such model, or it makes no embeddings, or vectors of another size."""

    code = "wrong_model"


class BadVectorsError(EmbeddingError):
    """The model server answered with something that is no vector."""

    code = "bad_vectors"

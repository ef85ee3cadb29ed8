"""What ranking asks of an opened index. `index.Database` answers; ranking itself opens nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from hermes_digup.records import File, FolderFilter, KeywordRow, PhraseRow, Segment, VectorRows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hermes_digup.records import Vector


class Corpus(Protocol):
    """One opened, unchanging index."""

    @property
    def is_code(self) -> bool:
        """Whether this is the code index, which ranks names in code."""

    def vector_rows(self) -> VectorRows:
        """The columns of every stored vector, in order of (file, segment)."""

    def cosines(self, query: Vector) -> NDArray[np.float32]:
        """Dot products of the query with every stored vector, in the order of `vector_rows`. Shape: (n,)."""

    def files_in(self, folder: FolderFilter) -> Collection[int]:
        """Numbers of all files inside a folder."""

    def keyword_rows(
        self, patterns: Sequence[str], limit: int, folder: FolderFilter | None
    ) -> Sequence[KeywordRow]:
        """Segments that match any FTS expression, best bm25 first, then by number; in a folder if given."""

    def files_matching(self, patterns: Sequence[str], files: Collection[int]) -> Sequence[Collection[int]]:
        """For each FTS expression, which of these files match it in any row, the name row included."""

    def phrase_rows(self, match: str, file: int, limit: int) -> Sequence[PhraseRow]:
        """The rows of one file that match, in order of loc (none first)."""

    def marked(self, patterns: Sequence[str], segments: Collection[int]) -> Mapping[int, str]:
        """The text index's own snippets of those of the segments that match any, matches in « »."""

    def originals(self, segments: Collection[int]) -> Mapping[int, str]:
        """Texts as written, of those of the segments whose text normalising changed."""

    def text(self, segment: int) -> str | None:
        """A segment's text as written; None when it has none."""

    def files(self, numbers: Collection[int]) -> dict[int, File]:
        """The files with these numbers."""

    def segments(self, numbers: Collection[int]) -> dict[int, Segment]:
        """The segments with these numbers."""

    def file_kinds(self, numbers: Collection[int]) -> dict[int, str]:
        """The kinds, as stored, of the files with these numbers."""

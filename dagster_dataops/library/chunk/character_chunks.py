"""``chunk.Characters``: cut a text at a pattern, or after a number of characters."""

import re
from collections.abc import Iterator
from typing import Any

from typing_extensions import override

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.text_mapping import ChunkOperator
from dagster_dataops.library.user_patterns import compiled
from dagster_dataops.operators.options.ranges import AtLeastZero, PositiveInt

chunk: Any = data_register.new_group("chunk")


class Characters(ChunkOperator, chunk):
    r"""Cut a text at a pattern, or after a number of characters; one record for each piece.

    Reads ``input_key``. Writes the piece to ``output_key`` (by default ``input_key``) and its
    number, from 0, to ``index_key``.

    - ``split_pattern`` alone: cut at each match of this regular expression. Pieces of white space
      are left out, and so are the matches.
    - ``max_len`` alone (``split_pattern=None``): pieces of ``max_len`` characters, each beginning
      ``max_len - overlap_len`` characters after the one before. The last piece may lie wholly
      inside the one before it. A text that fits is one piece.
    - Both: while the rest of the text is longer than ``max_len``, cut at the last match within
      ``max_len`` characters. Without a match, cut at ``max_len`` characters; the next piece repeats
      the last ``overlap_len`` of them. Pieces of white space are left out, but for the last.

    The pieces are those of Data-Juicer's ``text_chunk_mapper``, which recurses once for each piece
    and so fails on long texts. A pattern that matches no character cannot stop the cutting here.
    ``text.Chunk`` looks for a good place itself.

    Args:
        max_len: Most characters of a piece; ``None`` cuts at the pattern alone.
        split_pattern: Regular expression of the places to cut; ``None`` cuts by length alone.
        overlap_len: Characters that a piece repeats from the end of the one before.
    """

    def __init__(
        self,
        max_len: PositiveInt | None = None,
        split_pattern: str | None = r"\n\n",
        overlap_len: AtLeastZero = 0,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if max_len is None and split_pattern is None:
            msg = "give max_len, split_pattern or both"
            raise DefinitionError(msg)
        if max_len is not None and overlap_len >= max_len:
            msg = f"overlap_len must be below max_len={max_len}, got {overlap_len}"
            raise DefinitionError(msg)
        self._max, self._overlap = max_len, overlap_len
        self._pattern: re.Pattern[str] | None = None
        if split_pattern is not None:
            self._pattern = compiled(split_pattern, option="split_pattern")

    @override
    def pieces(self, text: str) -> list[str]:
        if self._max is None:
            assert self._pattern is not None  # noqa: S101 - one of both is given
            return [piece for piece in _between(self._pattern, text) if piece.strip()]
        if len(text) <= self._max:
            return [text]
        if self._pattern is None:
            starts = range(0, len(text), self._max - self._overlap)
            return [text[start : start + self._max] for start in starts]
        return list(self._cut_at_matches(self._pattern, text, self._max))

    def _cut_at_matches(self, pattern: re.Pattern[str], text: str, most: int) -> Iterator[str]:
        start = 0
        while len(text) - start > most:
            piece = text[start : start + most]
            last = max(pattern.finditer(piece), key=re.Match.start, default=None)
            if last is None or last.end() == 0:
                start += most - self._overlap
            else:
                piece = piece[: last.start()]
                start += last.end()
            if piece.strip():
                yield piece
        yield text[start:]


def _between(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """Yield the text between the matches."""
    start = 0
    for match in pattern.finditer(text):
        yield text[start : match.start()]
        start = match.end()
    yield text[start:]

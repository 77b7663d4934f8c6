"""``chunk.Tokens``: cut a text after a number of tokens."""

from collections.abc import Iterator
from typing import Any

from typing_extensions import override

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.tokenization import tokenizer as tokenizer_of
from dagster_dataops.library.chunk.character_chunks import chunk
from dagster_dataops.library.text_mapping import ChunkOperator
from dagster_dataops.operators.options.ranges import AtLeastZero, PositiveInt


class Tokens(ChunkOperator, chunk):
    """Cut a text after ``max_tokens`` tokens; one record for each piece.

    Reads ``input_key``. Writes the piece to ``output_key`` (by default ``input_key``) and its
    number, from 0, to ``index_key``. A text without tokens makes no piece.

    The whole text is tokenized once. It is cut only between tokens where a character ends, so that
    no character is divided: with ``overlap=0``, the pieces together are the text. If a character
    alone has more than ``max_tokens`` tokens, its piece has more. Tokenized by itself, a piece may
    have another number of tokens.

    Needs the extra ``tokens`` for vocabularies by name, and ``tokenizers`` for files. LazyLLM's
    TokenChunker downloads its tokenizer, removes the other keys and drops a short last piece; this
    one does not.

    Args:
        tokenizer: One of ``tokens.Count``.
        max_tokens: Most tokens of a piece.
        overlap: Tokens that a piece repeats from the end of the one before.
    """

    def __init__(
        self,
        tokenizer: str = "o200k_base",
        max_tokens: PositiveInt = 512,
        overlap: AtLeastZero = 0,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if overlap >= max_tokens:
            msg = f"overlap must be below max_tokens={max_tokens}, got {overlap}"
            raise DefinitionError(msg)
        self._tokenizer = tokenizer_of(tokenizer)
        self._max, self._overlap = max_tokens, overlap

    @override
    def pieces(self, text: str) -> Iterator[str]:
        starts = self._tokenizer.starts(text)
        last = len(starts)
        starts.append(len(text))
        if last:
            starts[0] = 0  # with "whitespace", there may be some before the first word
        first = 0
        while first < last:
            end = _cut_before(starts, first, min(first + self._max, last))
            yield text[starts[first] : starts[end]]
            if end == last:
                return
            first = max(_at_or_before(starts, end - self._overlap), first + 1)
            while starts[first] < 0:
                first += 1


def _at_or_before(starts: list[int], token: int) -> int:
    while starts[token] < 0:
        token -= 1
    return token


def _cut_before(starts: list[int], first: int, token: int) -> int:
    """Return the last token up to ``token`` where a text may be cut, or the next after it."""
    end = _at_or_before(starts, token)
    if end > first:
        return end
    end = token
    while starts[end] < 0:
        end += 1
    return end

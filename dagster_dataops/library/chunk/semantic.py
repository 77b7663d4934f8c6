"""``chunk.Semantic``: cut a text at its strongest separators."""

from collections.abc import Callable
from typing import Any

from typing_extensions import override

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.tokenization import tokenizer as tokenizer_of
from dagster_dataops.library.chunk.character_chunks import chunk
from dagster_dataops.library.option_values import check_choice, needs_extra
from dagster_dataops.library.text_mapping import ChunkOperator
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat, PositiveInt


class Semantic(ChunkOperator, chunk):
    """Cut a text at its strongest separators: line ends, then sentence ends, clauses and words.

    Reads ``input_key``. Writes the piece to ``output_key`` (by default ``input_key``) and its
    number, from 0, to ``index_key``. An empty text makes no piece.

    Each piece has up to ``chunk_size=512`` of ``unit``: ``"words"`` (the default, between white
    space), ``"characters"`` or ``"tokens"`` of ``tokenizer="o200k_base"``. ``overlap=0`` is a
    number of these units, or a fraction of ``chunk_size`` if it is below 1.

    The work is done by semchunk; needs the extra ``chunk``, and ``tokens`` for that unit.

    Args:
        chunk_size: Most units of a piece.
        unit: ``words`` between white space, ``characters`` or ``tokens``.
        tokenizer: Counts the tokens: one of ``tokens.Count``.
        overlap: Units that a piece repeats, or a fraction of ``chunk_size`` if below 1.
    """

    def __init__(
        self,
        chunk_size: PositiveInt = 512,
        unit: str = "words",
        tokenizer: str = "o200k_base",
        overlap: AtLeastZeroFloat = 0,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if overlap >= chunk_size:
            msg = f"overlap must be below chunk_size={chunk_size}, got {overlap}"
            raise DefinitionError(msg)
        with needs_extra("chunk.Semantic", "chunk"):
            from semchunk.semchunk import chunk as split
        self._split: Callable[..., Any] = split
        self._counter = _counter(unit, tokenizer)
        self._size, self._overlap = chunk_size, overlap or None

    @override
    def pieces(self, text: str) -> list[str]:
        found: list[str] = self._split(
            text, self._size, self._counter, memoize=False, overlap=self._overlap
        )
        return found


def _counter(unit: str, tokenizer: str) -> Callable[[str], int]:
    check_choice("unit", unit, ("words", "characters", "tokens"))
    if unit == "characters":
        return len
    return tokenizer_of("whitespace" if unit == "words" else tokenizer).count

"""``chunk.Semantic``: cut a text at its strongest separators."""

from collections.abc import Callable
from typing import Any

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError, MissingExtraError
from dagster_dataops.library.analysis.tokenization import tokenizer as tokenizer_of
from dagster_dataops.library.chunk.pieces import Pieces, check_limit
from dagster_dataops.records import Record

chunk: Any = data_register.new_group("chunk")


class Semantic(chunk):
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
        input_key: Key of the text: a column, or a selector.
        output_key: Key of the piece; ``None`` for ``input_key``.
        index_key: Column of the number of the piece, from 0; ``None`` writes none.
    """

    def __init__(
        self,
        chunk_size: int = 512,
        unit: str = "words",
        tokenizer: str = "o200k_base",
        overlap: float = 0,
        input_key: str = "text",
        *,
        output_key: str | None = None,
        index_key: str | None = "chunk",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_limit("chunk_size", chunk_size, 1)
        if not 0 <= overlap < chunk_size:
            msg = f"overlap must be in [0, chunk_size={chunk_size}), got {overlap}"
            raise DefinitionError(msg)
        self._counter = _counter(unit, tokenizer)
        self._size, self._overlap = chunk_size, overlap or None
        self._split = _semchunk()
        self._pieces = Pieces(input_key, output_key, index_key)

    def forward(self, record: Record) -> list[Record]:
        text = self._pieces.text(record)
        pieces = self._split(text, self._size, self._counter, memoize=False, overlap=self._overlap)
        return self._pieces.records(record, pieces)


def _semchunk() -> Callable[..., Any]:
    try:
        from semchunk.semchunk import chunk as split
    except ImportError:
        raise MissingExtraError("chunk.Semantic", "chunk") from None
    return split


def _counter(unit: str, tokenizer: str) -> Callable[[str], int]:
    if unit == "characters":
        return len
    if unit not in {"words", "tokens"}:
        msg = f"unit is {unit!r}; use 'words', 'characters' or 'tokens'"
        raise DefinitionError(msg)
    return tokenizer_of("whitespace" if unit == "words" else tokenizer).count

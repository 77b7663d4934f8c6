"""``chunk.Characters``, ``Tokens`` and ``Semantic``: cut a text after a number of units."""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.tokenizers.tokenization import tokenizer as tokenizer_of
from dagster_dataops.library.option_values import check_choice, needs_extra
from dagster_dataops.library.text_mapping import ChunkOperator
from dagster_dataops.library.user_patterns import compiled
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.ranges import AtLeastZero, AtLeastZeroFloat, PositiveInt

chunk: Any = data_register.new_group("chunk")


class Characters(ChunkOperator, chunk):
    r"""Cut a text at a pattern, or after a number of characters; one record for each piece.

    Reads ``input_key``. Writes the piece to ``output_key`` (by default ``input_key``) and its
    number, from 0, to ``index_key``.

    - ``split_pattern`` alone: cut at each match of this regular expression. Pieces of white space
      are left out, and so are the matches.
    - ``max_chars`` alone (``split_pattern=None``): pieces of ``max_chars`` characters, each
      beginning ``max_chars - overlap_chars`` characters after the one before. The last piece may
      lie wholly inside the one before it. A text that fits is one piece.
    - Both: while the rest of the text is longer than ``max_chars``, cut at the last match within
      ``max_chars`` characters. Without a match, cut at ``max_chars`` characters; the next piece
      repeats the last ``overlap_chars`` of them. Pieces of white space are left out, but for the
      last.

    The pieces are those of Data-Juicer's ``text_chunk_mapper``, which recurses once for each piece
    and so fails on long texts. A pattern that matches no character cannot stop the cutting here.
    ``text.Chunk`` looks for a good place itself.

    Args:
        max_chars: Most characters of a piece; ``None`` cuts at the pattern alone.
        split_pattern: Regular expression of the places to cut; ``None`` cuts by length alone.
        overlap_chars: Characters that a piece repeats from the end of the one before.
    """

    renamed_options: ClassVar = {"max_len": "max_chars", "overlap_len": "overlap_chars"}

    def __init__(
        self,
        max_chars: PositiveInt | None = None,
        split_pattern: str | None = r"\n\n",
        overlap_chars: AtLeastZero = 0,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if max_chars is None and split_pattern is None:
            msg = "give max_chars, split_pattern or both"
            raise DefinitionError(msg)
        if max_chars is not None and overlap_chars >= max_chars:
            msg = f"overlap_chars must be below max_chars={max_chars}, got {overlap_chars}"
            raise DefinitionError(msg)
        self._max, self._overlap = max_chars, overlap_chars
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


class Tokens(ChunkOperator, chunk):
    """Cut a text after ``max_tokens`` tokens; one record for each piece.

    Reads ``input_key``. Writes the piece to ``output_key`` (by default ``input_key``) and its
    number, from 0, to ``index_key``. A text without tokens makes no piece.

    The whole text is tokenized once. It is cut only between tokens where a character ends, so that
    no character is divided: with ``overlap_tokens=0``, the pieces together are the text. If a
    character alone has more than ``max_tokens`` tokens, its piece has more. Tokenized by itself, a
    piece may have another number of tokens.

    Needs the extra ``tokens`` for vocabularies by name, and ``tokenizers`` for files. LazyLLM's
    TokenChunker downloads its tokenizer, removes the other keys and drops a short last piece; this
    one does not.

    Args:
        tokenizer: One of ``tokens.Count``.
        max_tokens: Most tokens of a piece.
        overlap_tokens: Tokens that a piece repeats from the end of the one before.
    """

    renamed_options: ClassVar = {"overlap": "overlap_tokens"}

    def __init__(
        self,
        tokenizer: Annotated[str, FileContent] = "o200k_base",
        max_tokens: PositiveInt = 512,
        overlap_tokens: AtLeastZero = 0,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if overlap_tokens >= max_tokens:
            msg = f"overlap_tokens must be below max_tokens={max_tokens}, got {overlap_tokens}"
            raise DefinitionError(msg)
        self._tokenizer = tokenizer_of(tokenizer)
        self._max, self._overlap = max_tokens, overlap_tokens

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
        tokenizer: Annotated[str, FileContent] = "o200k_base",
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
        parts: list[str] = self._split(
            text, self._size, self._counter, memoize=False, overlap=self._overlap
        )
        return parts


def _counter(unit: str, tokenizer: str) -> Callable[[str], int]:
    check_choice("unit", unit, ("words", "characters", "tokens"))
    if unit == "characters":
        return len
    return tokenizer_of("whitespace" if unit == "words" else tokenizer).count

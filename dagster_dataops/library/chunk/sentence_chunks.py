"""``chunk.Sentences``: cut a text between sentences."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from annotated_types import Ge

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.sentence_splitting import sentences_function
from dagster_dataops.library.analysis.tokenizers.tokenization import tokenizer as tokenizer_of
from dagster_dataops.library.chunk.sized_chunks import chunk
from dagster_dataops.library.text_mapping import ChunkOperator
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.ranges import AtLeastZero, PositiveInt

_CharacterTokens: TypeAlias = Annotated[int, Ge(4)]  # a character may have four tokens

_MOST_AT_ONCE: Final = 8  # characters for each token of the limit


class _Span(NamedTuple):
    start: int
    end: int
    tokens: int


class Sentences(ChunkOperator, chunk):
    """Cut a text between sentences, as many whole ones in a piece as fit; one record a piece.

    Reads ``input_key``. Writes the piece to ``output_key`` (by default ``input_key``) and its
    number, from 0, to ``index_key``. A text without sentences makes no piece.

    A piece is the part of the text from its first sentence to the end of its last one, with up to
    ``max_chars=1000`` characters; or, if ``max_tokens`` is given, with up to that many tokens of
    ``tokenizer="o200k_base"``, counted for the piece and, if the text makes several, for each
    sentence, too (``max_chars`` then counts only if it is given). A sentence that is longer is cut
    at its last space that fits, or anywhere if there is none. A piece begins with the last
    ``overlap_sentences=0`` sentences of the piece before it, as far as the next sentence fits
    behind them. ``sentences="rule"`` (or ``"spacy"``, ``"newline"``, a function) and
    ``language="en"`` are as in ``text.SplitSentences``. Tokens are counted with the extra
    ``tokens``; ``"spacy"`` has the extra ``spacy``.

    Args:
        max_chars: Most characters of a piece; ``None`` is 1000, or no limit with ``max_tokens``.
        max_tokens: Most tokens of a piece, at least 4; ``None`` for no limit.
        overlap_sentences: Sentences that a piece repeats from the end of the one before.
        tokenizer: Counts the tokens: one of ``tokens.Count``.
        sentences: How the text is split: ``rule``, ``spacy``, ``newline`` or a function.
        language: ISO 639-1 code for ``sentences="spacy"``.
    """

    def __init__(
        self,
        max_chars: PositiveInt | None = None,
        max_tokens: _CharacterTokens | None = None,
        overlap_sentences: AtLeastZero = 0,
        tokenizer: Annotated[str, FileContent] = "o200k_base",
        sentences: str | Callable[[str], list[str]] = "rule",
        *,
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if max_chars is None and max_tokens is None:
            max_chars = 1000
        self._max_chars, self._max_tokens = max_chars, max_tokens
        self._size = min(size for size in (max_chars, max_tokens) if size is not None)
        self._count = None if max_tokens is None else tokenizer_of(tokenizer).count
        self._overlap = overlap_sentences
        self._sentences = sentences_function(sentences, language)

    @override
    def pieces(self, text: str) -> Iterable[str]:
        sentences = list(self._spans(text))
        if sentences and self._fits_whole(text, sentences[0][0], sentences[-1][1]):
            return [text[sentences[0][0] : sentences[-1][1]]]
        spans = [part for span in sentences for part in self._fitting(text, *span)]
        return self._packed(text, spans)

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each sentence.

        Raises:
            UnfitRecordError: A function of the user returned a sentence that the text has not.
        """
        position = 0
        for sentence in self._sentences(text):
            start = text.find(sentence, position)
            if start < 0:
                msg = f"sentences returned {sentence[:80]!r}, which is no part of the text in order"
                raise UnfitRecordError(msg)
            position = start + len(sentence)
            if sentence:
                yield start, position

    def _tokens(self, text: str, start: int, end: int) -> int:
        return 0 if self._count is None else self._count(text[start:end])

    def _fits(self, text: str, start: int, end: int) -> bool:
        too_long = self._max_chars is not None and end - start > self._max_chars
        return not too_long and self._tokens(text, start, end) <= (self._max_tokens or 0)

    def _fits_whole(self, text: str, start: int, end: int) -> bool:
        """Return whether a part fits, without counting the tokens of one that is far too long."""
        return end - start <= _MOST_AT_ONCE * self._size and self._fits(text, start, end)

    def _fitting(self, text: str, start: int, end: int) -> Iterator[_Span]:
        """Yield a sentence as it is, or in parts that fit, with their tokens."""
        while start < end:
            cut = self._cut(text, start, end)
            yield _Span(start, cut, self._tokens(text, start, cut))
            start = cut
            while start < end and text[start].isspace():
                start += 1

    def _cut(self, text: str, start: int, end: int) -> int:
        """Return the end of the longest part that fits, at a space if there is one."""
        if self._fits_whole(text, start, end):
            return end
        fits = partial(self._fits, text, start)
        cut = _last_fitting(fits, start + 1, end, self._size)
        space = text.rfind(" ", start + 1, cut + 1) if cut < end else -1
        fitting = space > start and fits(space)  # a shorter part may have more tokens
        return space if fitting else cut

    def _packed(self, text: str, spans: list[_Span]) -> Iterator[str]:
        """Yield pieces of as many spans as fit."""
        first = 0  # the first span of the piece
        fresh = 0  # the first span that no piece has yet
        while fresh < len(spans):
            after = self._reach(text, spans, first, fresh)
            if after == fresh:  # the repeated sentences leave no room
                first += 1
                continue
            yield text[spans[first].start : spans[after - 1].end]
            fresh = after
            first = max(fresh - self._overlap, first + 1)

    def _reach(self, text: str, spans: list[_Span], first: int, fresh: int) -> int:
        """Return the span after the last one that fits into the piece; ``fresh`` if none does."""
        start = spans[first].start
        tokens = sum(span.tokens for span in spans[first:fresh])
        after = fresh
        while after < len(spans):
            span = spans[after]
            tokens += span.tokens
            too_long = self._max_chars is not None and span.end - start > self._max_chars
            if too_long or (self._max_tokens is not None and tokens > self._max_tokens):
                break
            after += 1
        while after > max(fresh, first + 1) and not self._fits(text, start, spans[after - 1].end):
            after -= 1
        return after


def _last_fitting(fits: Callable[[int], bool], low: int, high: int, step: int) -> int:
    """Return the largest number up to ``high`` that fits, at least ``low``.

    Few numbers far above the result are tried, since these cost most.
    """
    while low < high:
        tried = min(low + step, high)
        if not fits(tried):
            high = tried - 1
            break
        low = tried
        step *= 2
    while low < high:
        tried = (low + high + 1) // 2
        if fits(tried):
            low = tried
        else:
            high = tried - 1
    return low

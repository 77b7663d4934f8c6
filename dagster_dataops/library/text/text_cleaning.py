"""The first operators of group ``text``: normalize, filter by length and letters, and split."""

import re
from collections.abc import Iterator
from typing import Any, Final

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.unicode_normalization import normalized
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.text_mapping import ChunkOperator, TextOperator
from dagster_dataops.operators.options.ranges import AtLeastZero, Fraction, PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

text: Any = data_register.new_group("text")

_SPACES: Final = re.compile(r"[ \t\u00a0\u2000-\u200a\u3000]+")
_LINE_ENDS: Final = re.compile(r" *\r?\n *")
_BLANK_LINES: Final = re.compile(r"\n{3,}")
_INVISIBLE: Final = re.compile("[\u0000-\u0008\u000b\u000c\u000e-\u001f\u200b-\u200f\ufeff]")


class Normalize(TextOperator, text):
    """Normalize texts: NFKC, single spaces, at most one blank line, no invisible characters.

    Reads ``input_key`` (one key or several) and writes ``output_key`` (by default, the same keys).
    A missing or null value becomes the empty text; a value of another type is an error. A selector
    of several elements can only be written to the same place.
    """

    @override
    def changed(self, value: str) -> str:
        value = _SPACES.sub(" ", _INVISIBLE.sub("", normalized("NFKC", value)))
        return _BLANK_LINES.sub("\n\n", _LINE_ENDS.sub("\n", value)).strip()


class LengthFilter(text):
    """Keep records whose text has ``min_chars`` to ``max_chars`` characters, inclusive.

    Reads ``input_key``; white space is not counted. The reasons of drops are ``low_num_chars`` and
    ``high_num_chars``.

    Args:
        min_chars: Least characters, white space not counted; ``None`` for no limit.
        max_chars: Most characters, white space not counted; ``None`` for no limit.
        input_key: Key of the text: a column, or a selector.
    """

    def __init__(
        self,
        min_chars: AtLeastZero | None = 1,
        max_chars: AtLeastZero | None = None,
        input_key: str = "text",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._min, self._max, self._column = min_chars, max_chars, FieldKey(input_key)

    def forward(self, record: Record) -> Drop | None:
        length = sum(map(len, self._column.text(record).split()))
        if self._min is not None and length < self._min:
            return Drop("low_num_chars")
        return Drop("high_num_chars") if self._max is not None and length > self._max else None


class LetterRatioFilter(text):
    """Keep records in which at least ``min_ratio`` of the characters are letters.

    Reads ``input_key``; white space is not counted. Removes tables, separators and dumps of
    numbers. The reasons of drops are ``empty`` and ``low_letter_ratio``.

    Args:
        min_ratio: Least share of letters, 0 to 1.
        input_key: Key of the text: a column, or a selector.
    """

    def __init__(self, min_ratio: Fraction = 0.6, input_key: str = "text", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._ratio, self._column = min_ratio, FieldKey(input_key)

    def forward(self, record: Record) -> Drop | None:
        characters = "".join(self._column.text(record).split())
        if not characters:
            return Drop("empty")
        letters = sum(map(str.isalpha, characters))
        return None if letters / len(characters) >= self._ratio else Drop("low_letter_ratio")


class Chunk(ChunkOperator, text):
    """Split a text into pieces of at most ``max_chars`` characters, one record per piece.

    Splits at the last blank line, newline, sentence end or space that fits. Reads ``input_key``.
    Each piece is a copy of the record, and writes its text to ``output_key`` (by default
    ``input_key``) and its number, from 0, to ``index_key``. Consecutive pieces share up to
    ``overlap_chars`` characters.

    Args:
        max_chars: Most characters of a piece.
        overlap_chars: Most characters that a piece repeats from the end of the one before.
        index_key: Column of the number of the piece, from 0.
    """

    def __init__(
        self,
        max_chars: PositiveInt = 1000,
        overlap_chars: AtLeastZero = 0,
        input_key: str = "text",
        output_key: str | None = None,
        index_key: str = "chunk",
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, output_key, index_key=index_key, **kwargs)
        if overlap_chars >= max_chars:
            msg = f"overlap_chars must be below max_chars={max_chars}, got {overlap_chars}"
            raise DefinitionError(msg)
        self._size, self._overlap = max_chars, overlap_chars

    @override
    def pieces(self, text: str) -> Iterator[str]:
        start = 0
        while start < len(text):
            end = self._end_of_piece(text, start)
            piece = text[start:end].strip()
            if piece:
                yield piece
            start = end if end >= len(text) else max(end - self._overlap, start + 1)

    def _end_of_piece(self, whole: str, start: int) -> int:
        limit = start + self._size
        if limit >= len(whole):
            return len(whole)
        earliest = start + max(self._size // 2, self._overlap + 1)
        for mark in ("\n\n", "\n", ". ", " "):
            place = whole.rfind(mark, earliest, limit)
            if place >= 0:
                return place + len(mark)
        return limit

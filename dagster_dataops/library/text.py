"""Group ``text``: record operators that clean, filter and cut texts."""

import re
import unicodedata
from typing import Any, Final

from dagster_dataops.data import data_register
from dagster_dataops.library.keys import Keys, key_pairs
from dagster_dataops.records import Record

text: Any = data_register.new_group("text")

_SPACES: Final = re.compile(r"[ \t\u00a0\u2000-\u200a\u3000]+")
_LINE_ENDS: Final = re.compile(r" *\r?\n *")
_BLANK_LINES: Final = re.compile(r"\n{3,}")
_INVISIBLE: Final = re.compile("[\u0000-\u0008\u000b\u000c\u000e-\u001f\u200b-\u200f\ufeff]")


class Normalize(text):
    """Bring texts to one form: NFKC, single spaces, at most one blank line, nothing invisible.

    Reads ``input_key`` (one key or several), writes ``output_key`` (where it was read by default).
    A missing or empty value becomes the empty string.
    """

    def __init__(
        self, input_key: Keys = "text", output_key: Keys | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._pairs = key_pairs(input_key, output_key)

    def forward(self, record: Record) -> None:
        for read, written in self._pairs:
            value = unicodedata.normalize("NFKC", str(record.get(read) or ""))
            value = _SPACES.sub(" ", _INVISIBLE.sub("", value))
            record[written] = _BLANK_LINES.sub("\n\n", _LINE_ENDS.sub("\n", value)).strip()


class LengthFilter(text):
    """Keep records whose text has ``min_chars`` to ``max_chars`` characters, both included.

    Reads ``input_key``; white space does not count. ``max_chars`` 0 sets no upper limit.
    """

    def __init__(
        self, min_chars: int = 1, max_chars: int = 0, input_key: str = "text", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._min, self._max, self._key = min_chars, max_chars, input_key

    def forward(self, record: Record) -> list[Record] | None:
        length = sum(map(len, str(record.get(self._key) or "").split()))
        fits = self._min <= length and (not self._max or length <= self._max)
        return None if fits else []


class LetterRatioFilter(text):
    """Keep records of whose characters, white space aside, at least ``min_ratio`` are letters.

    Reads ``input_key``. Tables, rulers and dumps of numbers fall through.
    """

    def __init__(self, min_ratio: float = 0.6, input_key: str = "text", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._ratio, self._key = min_ratio, input_key

    def forward(self, record: Record) -> list[Record] | None:
        characters = "".join(str(record.get(self._key) or "").split())
        letters = sum(map(str.isalpha, characters))
        return None if characters and letters / len(characters) >= self._ratio else []


class Chunk(text):
    """Cut a text into pieces of at most ``max_chars`` characters, one record a piece.

    Cuts at the last blank line, line end, sentence end or space that fits. Reads ``input_key``;
    every piece is a copy of the record with its part in ``output_key`` (``input_key`` by
    default) and its number, from 0, in ``index_key``. Neighbours share up to
    ``overlap_chars`` characters.
    """

    def __init__(
        self,
        max_chars: int = 1000,
        overlap_chars: int = 0,
        input_key: str = "text",
        output_key: str | None = None,
        index_key: str = "chunk",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not 0 <= overlap_chars < max_chars:
            msg = f"overlap_chars must be in [0, max_chars={max_chars}), got {overlap_chars}"
            raise ValueError(msg)
        self._size, self._overlap = max_chars, overlap_chars
        self._read, self._written, self._index = input_key, output_key or input_key, index_key

    def forward(self, record: Record) -> list[Record]:
        whole = str(record.get(self._read) or "")
        pieces = self._pieces(whole)
        return [
            {**record, self._written: piece, self._index: number}
            for number, piece in enumerate(pieces)
        ]

    def _pieces(self, whole: str) -> list[str]:
        pieces = []
        start = 0
        while start < len(whole):
            end = self._cut(whole, start)
            piece = whole[start:end].strip()
            if piece:
                pieces.append(piece)
            start = end if end >= len(whole) else max(end - self._overlap, start + 1)
        return pieces

    def _cut(self, whole: str, start: int) -> int:
        limit = start + self._size
        if limit >= len(whole):
            return len(whole)
        earliest = start + max(self._size // 2, self._overlap + 1)
        for mark in ("\n\n", "\n", ". ", " "):
            found = whole.rfind(mark, earliest, limit)
            if found >= 0:
                return found + len(mark)
        return limit

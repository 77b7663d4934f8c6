"""``dedup.Substring``: remove passages that occurred before in the set."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import xxhash

from dagster_dataops.library.analysis.window_hashes import powers_of
from dagster_dataops.library.analysis.word_splitting import Splitter, words_function
from dagster_dataops.library.dedup.algorithms.option_checks import need_numpy
from dagster_dataops.library.dedup.algorithms.repeated_parts import (
    RepeatedParts,
    pack_digests,
    repeated_parts,
)
from dagster_dataops.library.dedup.exact import dedup
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.operators.options.ranges import AtLeastZero, PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

_MULTIPLIER: Final = 0x9E3779B97F4A7C15  # odd, so that it has an inverse
_MIXER: Final = 0xD6E8FEB86659FD93
_BITS: Final = 64


class Substring(dedup):
    """Remove passages of at least ``min_tokens`` words that occurred before in the set.

    Reads and writes ``input_key``. A run of ``min_tokens`` equal words that occurred before, in an
    earlier record or earlier in the same one, is removed with the white space after it; longer
    passages consist of such runs. Words are compared exactly; white space does not count. A text
    that lost something is dropped if it has fewer than ``min_words`` words, at least one.
    ``words`` splits the texts.

    As the exact substrings of Lee et al. (2021), but with words for tokens, and the first
    occurrence stays. 128-bit hashes are compared. The selection uses up to ``max_memory_mb`` MB and
    4 bytes per record, then 24 bytes per word on disk; the sketches take 22 bytes per word. Needs
    the extra ``dedup``.

    Args:
        input_key: Key of the text: a column, or a selector.
        min_tokens: Least words of a passage.
        min_words: Least words of a text that lost something, at least 1.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
        language: ISO 639-1 code for ``words="spacy"``.
        max_memory_mb: Memory in MB before files are used.
    """

    renamed_options: ClassVar = {"min_doc_words": "min_words"}

    def __init__(
        self,
        input_key: str = "text",
        *,
        min_tokens: PositiveInt = 50,
        min_words: AtLeastZero = 1,
        words: str | Splitter = "whitespace",
        language: str = "en",
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        need_numpy("dedup.Substring")
        self._column = FieldKey(input_key).checked_single("name one text")
        self._size, self._min_words = min_tokens, max(1, min_words)
        self._words = words_function(words, language)
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> str:
        words = self._words(self._column.text(record))
        return pack_digests([_window_digests(words, self._size)])

    def keep(self, sketches: Iterator[str], scratch: Path) -> Iterator[Any]:
        return map(self._verdict, repeated_parts(sketches, scratch, self._max_bytes))

    def __dataops_partitioning__(self) -> RepeatedParts:
        return RepeatedParts(self._max_bytes, self._verdict)

    def _verdict(self, repeats: list[int]) -> Any:
        return _ranges(repeats, self._size) or True

    def change(self, record: Record, ranges: list[tuple[int, int]]) -> Record | Drop:
        text = self._column.text(record)
        words = self._words(text)
        starts = [*_starts(text, words), len(text)]
        kept = []
        end = left = 0  # a word, the words that stay
        for first, last in [*ranges, (len(words), len(words))]:
            kept.append(text[starts[end] if end else 0 : starts[first]])
            left += first - end
            end = last
        if left < self._min_words:
            return Drop("repeated")
        return self._column.replaced("".join(kept), record)


def _window_digests(words: list[str], size: int) -> bytes:
    """Return a digest of 16 bytes for each run of ``size`` words."""
    import numpy

    count = len(words) - size + 1
    if count < 1:
        return b""
    digests = b"".join(
        xxhash.xxh3_128_digest(word.encode("utf-8", "surrogatepass")) for word in words
    )
    hashes = numpy.frombuffer(digests, "<u8").reshape(-1, 2)
    sums = numpy.zeros((len(words) + 1, 2), "<u8")
    powers = powers_of(_MULTIPLIER, len(words)).reshape(-1, 1)
    numpy.cumsum(hashes * powers, axis=0, out=sums[1:])
    inverse = powers_of(pow(_MULTIPLIER, -1, 1 << _BITS), count).reshape(-1, 1)
    windows = (sums[size:] - sums[:-size]) * inverse
    windows ^= windows >> numpy.uint64(32)
    windows *= numpy.uint64(_MIXER)
    windows ^= windows >> numpy.uint64(32)
    return bytes(windows.tobytes())


def _ranges(repeats: list[int], size: int) -> list[tuple[int, int]]:
    """Return the ranges of words that windows cover."""
    ranges: list[tuple[int, int]] = []
    for first in repeats:
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], first + size)
        else:
            ranges.append((first, first + size))
    return ranges


def _starts(text: str, words: list[str]) -> Iterator[int]:
    """Yield the position of each word in the text."""
    at = 0
    for word in words:
        start = text.find(word, at)
        if start >= 0:  # else the splitter changed the word
            at = start
        yield at
        at += len(word)

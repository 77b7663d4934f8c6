"""``dedup.Bloom``: remove texts that repeat the n-grams of earlier texts, in constant memory."""

import base64
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final, TypeAlias

from annotated_types import Interval

from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.dedup.algorithms.ngram_hashes import NgramHashes
from dagster_dataops.library.dedup.algorithms.option_checks import NgramSize, need_numpy
from dagster_dataops.library.dedup.exact import dedup
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.operators.options.ranges import Fraction, PositiveInt
from dagster_dataops.records import Record

_MULTIPLIER: Final = 0x9E3779B97F4A7C15
_Hashes: TypeAlias = Annotated[int, Interval(ge=1, le=64)]


class Bloom(dedup):
    """Drop records most of whose n-grams were in records before them, in constant memory.

    Reads ``input_key``. The n-grams are ``ngram_size`` words in a row, ignoring case; a text of
    fewer words is one n-gram. Those of every record, dropped ones included, are marked in a Bloom
    filter of ``max_memory_mb`` MB, by ``hashes`` bits each. A record is dropped if more than
    ``threshold`` of its n-grams are marked.

    The memory does not grow with the records, but the share of n-grams that seem known does: with
    256 MB and 7 bits each it is 1 % after 220 million different n-grams, and 16 % after 440
    million. Needs the extra ``dedup``.

    As ``SingleBloomFilter`` of datatrove, which keeps every text of fewer than ``ngram_size``
    words, and uses hashes of 32 bits.

    Args:
        input_key: Key of the text: a column, or a selector.
        ngram_size: Number of words in an n-gram.
        threshold: Share of known n-grams, 0 to 1, above which a record is dropped.
        hashes: Bits in the filter for each n-gram.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
        max_memory_mb: Size of the filter in MB.
    """

    renamed_options: ClassVar = {"duplicate_threshold": "threshold"}

    def __init__(
        self,
        input_key: str = "text",
        *,
        ngram_size: NgramSize = 13,
        threshold: Fraction = 0.8,
        hashes: _Hashes = 7,
        words: str | Splitter = "regex",
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        need_numpy("dedup.Bloom")
        self._column, self._ngrams = FieldKey(input_key), NgramHashes(ngram_size, words)
        self._most, self._hashes = threshold, hashes
        self._bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> str:
        hashes = self._ngrams.of(self._column.text(record))
        return base64.b64encode(hashes.astype("<u8").tobytes()).decode()

    def keep(self, sketches: Iterator[str]) -> Iterator[bool]:
        import numpy

        marks = numpy.zeros(self._bytes, numpy.uint8)
        for packed in sketches:
            hashes = numpy.frombuffer(base64.b64decode(packed), "<u8")
            places, bits = self._places(hashes)
            known = (marks[places] & bits != 0).all(axis=1)
            numpy.bitwise_or.at(marks, places[~known], bits[~known])
            yield bool(known.sum() <= self._most * len(known))

    def _places(self, hashes: Any) -> tuple[Any, Any]:
        """Return bytes and bits of n-grams, each as an array with a row for each n-gram."""
        import numpy

        steps = hashes * numpy.uint64(_MULTIPLIER) >> numpy.uint64(16) | numpy.uint64(1)
        turns = numpy.arange(self._hashes, dtype=numpy.uint64)
        places = (hashes[:, None] + steps[:, None] * turns) % numpy.uint64(self._bytes * 8)
        bits = numpy.uint8(1) << (places & numpy.uint64(7)).astype(numpy.uint8)
        return places >> numpy.uint64(3), bits

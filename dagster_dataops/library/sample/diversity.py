"""``sample.Diversity``: choose records that differ as much as possible."""

import base64
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.dedup.algorithms.ngram_hashes import MinHash, NgramHashes
from dagster_dataops.library.dedup.algorithms.option_checks import need_numpy
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.llm.vector_files import packed_column, stored_rows
from dagster_dataops.library.sample.choosing import NumberKept
from dagster_dataops.library.sample.splitting import sample
from dagster_dataops.library.sorting.spill_lists import BitArray
from dagster_dataops.operators.options.ranges import AtLeastZero, Fraction, PositiveInt
from dagster_dataops.records import Record

_VALUES: Final = 128  # of a MinHash signature
_SEED: Final = 42
_BLOCK: Final = 8192


class Diversity(sample):
    """Keep ``count`` records that differ as much as possible.

    The first record is kept. Then the record is kept, again and again, that is least similar to
    the kept record to which it is most similar; of equal ones the first. This greedy choice of
    centers (Gonzalez 1985; as a core-set: Sener and Savarese 2017, arXiv:1708.00489) is at most
    twice as far from all records as the best one.

    Records are compared by the cosine of the vectors in ``vector_key``; or, without it, by the
    shared ``ngram_size`` words in a row of the texts in ``input_key``, ignoring case: by MinHash,
    an estimate of the Jaccard index from 128 hashes. ``ratio`` keeps a share of the records
    instead, rounded up. The result is in input order.

    The time grows with the number of records times the number that is kept. The vectors or
    signatures are in a file: 2 bytes per number of a vector, 512 per signature. Needs the extra
    ``dedup``.

    Args:
        count: Number of records that are kept.
        ratio: Share of the records that is kept, 0 to 1, instead of ``count``.
        vector_key: Column of the vector; ``None`` compares texts.
        input_key: Key of the text: a column, or a selector.
        ngram_size: Number of words in an n-gram.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
    """

    renamed_options: ClassVar = {"k": "count"}

    def __init__(
        self,
        count: AtLeastZero | None = None,
        *,
        ratio: Fraction | None = None,
        vector_key: str | None = None,
        input_key: str = "text",
        ngram_size: PositiveInt = 3,
        words: str | Splitter = "regex",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._number = NumberKept(count, ratio)
        need_numpy("sample.Diversity")
        self._vectors = None if vector_key is None else FieldKey(vector_key)
        self._column, self._ngrams = FieldKey(input_key), NgramHashes(ngram_size, words)
        if vector_key is None:
            self._minhash = MinHash("sample.Diversity", _VALUES, _SEED)

    def sketch(self, record: Record) -> str:
        if self._vectors is not None:
            return packed_column(self._vectors, record)
        hashes = self._ngrams.of(self._column.text(record))
        return base64.b64encode(array("I", self._minhash.of(hashes)).tobytes()).decode()

    def keep(self, sketches: Iterator[str], scratch: Path) -> Iterator[bool]:
        kind = "<u4" if self._vectors is None else "<f2"
        points = stored_rows(scratch / "points", sketches, kind)
        chosen = BitArray(len(points))
        for position in _centers(points, min(self._number.of(len(points)), len(points))):
            chosen.set(position)
        return iter(chosen)


def _centers(points: Any, number: int) -> Iterator[int]:
    """Yield the positions of the first centers of vectors or signatures."""
    import numpy

    nearest = numpy.full(len(points), -numpy.inf, "f4")  # similarity to the nearest center
    for _ in range(number):
        center = int(nearest.argmin())
        yield center
        for start in range(0, len(points), _BLOCK):
            block = slice(start, start + _BLOCK)
            near = nearest[block]
            numpy.maximum(near, _similar(points[block], points[center]), out=near)
        nearest[center] = numpy.inf


def _similar(points: Any, center: Any) -> Any:
    """Return the similarity of vectors or signatures to a center."""
    if points.dtype.kind == "f":
        return points.astype("f4") @ center.astype("f4")
    return (points == center).mean(axis=1, dtype="f4")

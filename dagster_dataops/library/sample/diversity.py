"""``sample.Diversity``: choose records that differ as much as possible."""

import base64
import math
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.dedup.algorithms.ngram_hashes import NgramHashes
from dagster_dataops.library.dedup.algorithms.option_checks import minhash, need_numpy
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.llm.vector_files import packed_vector
from dagster_dataops.library.sample.splitting import sample
from dagster_dataops.library.spill_lists import BitArray
from dagster_dataops.operators.options.ranges import AtLeastZero, Fraction, PositiveInt
from dagster_dataops.quantities import counted
from dagster_dataops.records import Record

_VALUES: Final = 128  # of a MinHash signature
_SEED: Final = 42
_BLOCK: Final = 8192


class Diversity(sample):
    """Keep ``k`` records that differ as much as possible.

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
        k: Number of records that are kept.
        ratio: Share of the records that is kept, 0 to 1, instead of ``k``.
        vector_key: Column of the vector; ``None`` compares texts.
        input_key: Key of the text: a column, or a selector.
        ngram_size: Number of words in an n-gram.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
    """

    def __init__(
        self,
        k: AtLeastZero | None = None,
        *,
        ratio: Fraction | None = None,
        vector_key: str | None = None,
        input_key: str = "text",
        ngram_size: PositiveInt = 3,
        words: str | Splitter = "regex",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if (k is None) == (ratio is None):
            msg = f"give k or ratio, got k={k} and ratio={ratio}"
            raise DefinitionError(msg)
        need_numpy("sample.Diversity")
        self._k, self._ratio = k, ratio
        self._vectors = None if vector_key is None else FieldKey(vector_key)
        self._column, self._ngrams = FieldKey(input_key), NgramHashes(ngram_size, words)
        self._minhash: Any = minhash("sample.Diversity") if vector_key is None else None

    def sketch(self, record: Record) -> str:
        if self._vectors is not None:
            found = self._vectors.present(record)
            return packed_vector(found[0] if len(found) == 1 else None)
        hashes = self._ngrams.of(self._column.text(record))
        digest = self._minhash.digest_matrix_from_flat_token_hashes(
            hashes, array("Q", [0, len(hashes)]), _VALUES, _SEED
        )
        return base64.b64encode(array("I", digest.to_rows()[0]).tobytes()).decode()

    def keep(self, sketches: Iterator[str], scratch: Path) -> Iterator[bool]:
        points = _Points(scratch / "points", sketches, "<u4" if self._vectors is None else "<f2")
        most = self._k
        if most is None:
            most = math.ceil(round((self._ratio or 0.0) * points.count, 9))
        chosen = BitArray(points.count)
        for position in points.centers(min(most, points.count)):
            chosen.set(position)
        return iter(chosen)


class _Points:
    """Vectors or signatures of all records, in a file.

    Args:
        path: The file, which must not exist.
        packed: Each in base64.
        kind: The type of their numbers: half precision for vectors.

    Attributes:
        count: How many they are.

    Raises:
        ValueError: They have different lengths.
    """

    def __init__(self, path: Path, packed: Iterator[str], kind: str) -> None:
        import numpy

        self.count, size = 0, 0
        with storage(path, "write"), path.open("xb") as file:
            for text in packed:
                point = base64.b64decode(text)
                if self.count and len(point) != size:
                    numbers = counted(len(point) // 2, "numbers")
                    msg = f"vector {self.count} has {numbers}, others {size // 2}"
                    raise ValueError(msg)
                size = file.write(point)
                self.count += 1
        width = size // numpy.dtype(kind).itemsize
        self._points: Any = numpy.zeros((0, width), kind)
        if self.count:
            self._points = numpy.memmap(path, kind, "r", shape=(self.count, width))

    def centers(self, number: int) -> Iterator[int]:
        """Yield the positions of the first centers."""
        import numpy

        nearest = numpy.full(self.count, -numpy.inf, "f4")  # similarity to the nearest center
        for _ in range(number):
            center = int(nearest.argmin())
            yield center
            for start in range(0, self.count, _BLOCK):
                block = slice(start, start + _BLOCK)
                near = nearest[block]
                numpy.maximum(near, self._similar(block, center), out=near)
            nearest[center] = numpy.inf

    def _similar(self, block: slice, center: int) -> Any:
        """Return the similarity of the points of a block to a center."""
        points, other = self._points[block], self._points[center]
        if points.dtype.kind == "f":
            return points.astype("f4") @ other.astype("f4")
        return (points == other).mean(axis=1, dtype="f4")

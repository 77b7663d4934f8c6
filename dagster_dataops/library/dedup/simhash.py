"""``dedup.SimHash``: remove texts with similar SimHash values."""

from itertools import combinations, pairwise
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import xxhash
from annotated_types import Interval

from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.dedup.algorithms.ngram_hashes import NgramHashes
from dagster_dataops.library.dedup.algorithms.option_checks import (
    NgramSize,
    check_range,
    cluster_columns,
    need_numpy,
    rank_value,
)
from dagster_dataops.library.dedup.algorithms.representatives import (
    Linkage,
    Similarity,
)
from dagster_dataops.library.dedup.algorithms.sketch_files import packed_value
from dagster_dataops.library.dedup.exact import dedup
from dagster_dataops.library.dedup.similar_records import SimilarRecords
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

_BITS: Final = 64
_Distance: TypeAlias = Annotated[int, Interval(ge=0, le=15)]


class SimHash(SimilarRecords, dedup, writes=cluster_columns):  # type: ignore[call-arg]  # by the metaclass
    """Drop records whose text has nearly the same SimHash value as that of another record.

    Reads ``input_key``. Each word ``ngram_size``-gram of the text, ignoring case, has a 64-bit
    hash. A bit of the SimHash value is the bit that most of them have. Two records are similar if
    at most ``max_distance`` bits differ. The value is cut into ``blocks`` blocks, of which
    ``blocks - max_distance`` agree in each such pair, so that all are found. A text is
    compared with up to 256 candidates, those first that agree in most blocks.

    ``linkage``, ``keep``, ``cluster_key`` and short texts as in `NearDuplicate`; other than
    Data-Juicer, which drops whole components, ``linkage="kept"`` is the default. The selection uses
    up to ``max_memory_mb`` MB, 8 to 40 bytes per record, and on disk 12 bytes per record and choice
    of blocks. Needs the extra ``dedup``.

    Args:
        input_key: Key of the text: a column, or a selector.
        ngram_size: Number of words in an n-gram.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
        ignore_notices: Whether notices of copyright and licence at the beginning of code are left
            out of the comparison, as `text.RemoveCopyrightHeader` finds them.
        blocks: Number of blocks that the 64 bits are cut into.
        max_distance: Most bits in which similar values differ.
        keep: Which record stays: ``first``, ``longest``, or a column whose largest number wins.
        linkage: ``kept`` or ``component``.
        cluster_key: Column of the cluster; ``None`` drops records instead.
        max_memory_mb: Memory in MB before files are used.
    """

    renamed_options: ClassVar = {"num_blocks": "blocks", "hamming_distance": "max_distance"}
    added_later = frozenset({"ignore_notices", "cluster_key"})

    def __init__(
        self,
        input_key: str = "text",
        *,
        ngram_size: NgramSize = 6,
        words: str | Splitter = "regex",
        ignore_notices: bool = False,
        blocks: PositiveInt = 6,
        max_distance: _Distance = 4,
        keep: str = "first",
        linkage: Linkage = "kept",
        cluster_key: str | None = None,
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        need_numpy("dedup.SimHash")
        check_range("blocks", blocks, max_distance + 1, 16)
        self._column, self._rank_by = FieldKey(input_key), keep
        self._cluster_key = cluster_key
        self._ngrams = NgramHashes(ngram_size, words, ignore_notices=ignore_notices)
        cuts = [_BITS * number // blocks for number in range(blocks + 1)]
        masks = [(1 << end) - (1 << start) for start, end in pairwise(cuts)]
        self._masks = [sum(some) for some in combinations(masks, blocks - max_distance)]
        check_range("the number of choices of blocks", len(self._masks), 1, 1000)
        self._similarity = Similarity(
            bands=len(self._masks),
            linkage=linkage,
            limit=1 - max_distance / _BITS,
            measure=_equal_bits,
            ranked=keep != "first",
        )
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> list[Any]:
        text = self._column.text(record)
        value = _simhash(self._ngrams.of(text))
        buckets = b"".join(
            xxhash.xxh3_64_digest((value & mask).to_bytes(8), seed=band)
            for band, mask in enumerate(self._masks)
        )
        return [buckets.hex(), rank_value(record, self._rank_by, text), packed_value(value)]


def _simhash(hashes: Any) -> int:
    import numpy

    bits = numpy.unpackbits(hashes.astype(">u8").view(numpy.uint8)).reshape(-1, _BITS)
    most = bits.sum(axis=0, dtype=numpy.int64) * 2 > len(hashes)
    return int.from_bytes(numpy.packbits(most).tobytes())


def _equal_bits(left: Any, other: Any, _: float) -> float:
    """Return the share of equal bits of two values, given as two 32-bit words each."""
    different = sum(int(word).bit_count() for word in left ^ other)
    return 1 - different / _BITS

"""``dedup.NearDuplicate``: remove texts that are similar to an earlier one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dagster_dataops.errors import DefinitionError, MissingExtraError
from dagster_dataops.library.algorithms.buckets import first_in_buckets
from dagster_dataops.library.algorithms.lsh_bands import choose_bands, pack_buckets, unpack_buckets
from dagster_dataops.library.deduplication import dedup, memory_bytes
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.records import Record

# Kana and Chinese characters are written without spaces; each counts as a word.
_SINGLE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_SINGLE}]|[^\W{_SINGLE}]+")


class NearDuplicate(dedup):
    """Drop records whose text is similar to that of an earlier kept record.

    The similarity of two texts is the Jaccard index of their sets of word ``ngram_size``-grams,
    ignoring case and punctuation. A text with fewer words is one n-gram; a text without words
    counts by its characters; a missing text is empty. The index is estimated by MinHash with
    ``permutations`` values from ``seed``. The values are cut into bands, and two records are
    similar if they agree in a band; ``threshold`` determines the shape of the bands. With 0.8 and
    128 permutations, pairs with index 0.6 are found with probability 0.01, 0.7: 0.08, 0.8: 0.40,
    0.9: 0.93, 0.95: 1.00; equal texts always. More permutations separate more sharply.

    In input order, a record is kept if it is similar to no kept record. So no two kept records are
    similar, and each dropped one is similar to a kept one. The result depends only on the options
    and the input. The selection uses up to ``max_memory_mb`` MB and one bit per band and record,
    then 16 to 32 bytes per band and record on disk. Needs the extra ``near-duplicates``.
    """

    def __init__(
        self,
        input_key: str = "text",
        *,
        threshold: float = 0.8,
        permutations: int = 128,
        ngram_size: int = 5,
        seed: int = 0,
        max_memory_mb: int = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        _check_range("threshold", threshold, 0.01, 1.0)
        _check_range("permutations", permutations, 1, 4096)
        _check_range("ngram_size", ngram_size, 1, 100)
        _check_range("seed", seed, 0, 2**64 - 1)
        self._column = FieldKey(input_key)
        self._permutations, self._ngram_size, self._seed = permutations, ngram_size, seed
        self._bands, self._rows = choose_bands(threshold, permutations)
        self._max_bytes = memory_bytes(max_memory_mb)
        self._minhash = _minhash()

    def sketch(self, record: Record) -> str:
        minhash = self._minhash(self._permutations, self._seed)
        minhash.update(ngrams(self._column.text(record), self._ngram_size))
        return pack_buckets(minhash.digest(), self._bands, self._rows)

    def keep(self, sketches: Iterator[str], scratch: Path) -> Iterator[bool]:
        return first_in_buckets(map(unpack_buckets, sketches), scratch, self._max_bytes)


def ngrams(text: str, size: int) -> list[str]:
    """Return the word n-grams of ``text``, at least one, ignoring case and punctuation."""
    words = _WORD.findall(text.casefold())
    if len(words) <= size:
        return [" ".join(words) or text.strip()]
    return list(map(" ".join, zip(*(words[start:] for start in range(size)), strict=False)))


def _minhash() -> Any:
    try:
        from rensa import RMinHash
    except ImportError:
        raise MissingExtraError("dedup.NearDuplicate", "near-duplicates") from None
    return RMinHash


def _check_range(option: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        msg = f"{option} must be between {least} and {most}, got {value}"
        raise DefinitionError(msg)

"""Hashes of the word n-grams of a text, for MinHash and for exact Jaccard indices."""

from array import array
from itertools import repeat
from typing import Any, Final, TypeAlias

import xxhash

from dagster_dataops.library.analysis.licence_notices import licence_notices
from dagster_dataops.library.analysis.text_spans import replaced
from dagster_dataops.library.analysis.word_splitting import Splitter, words_function
from dagster_dataops.library.option_values import needs_extra

Hashes: TypeAlias = Any  # an array of 64-bit integers

_LOWER_WORDS: Final = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() or chr(byte) == "_" else ord(" ")
    for byte in range(128)
) + bytes(128)
_MULTIPLIER: Final = 0x9E3779B97F4A7C15  # odd, so that no bit is lost


class NgramHashes:
    """Computes the hashes of the n-grams of texts, ignoring case.

    They have ``size`` words, split as by `words_function`. With ``ignore_notices``, notices of
    copyright at the beginning of code are left out.
    """

    def __init__(
        self, size: int, words: str | Splitter = "regex", *, ignore_notices: bool = False
    ) -> None:
        self._size, self._words = size, words_function(words)
        self._ignores_notices = ignore_notices
        self._plain = words == "regex"
        self._factors = [pow(_MULTIPLIER, power, 1 << 64) for power in range(size)]

    def of(self, text: str) -> Hashes:
        """Return the hashes of a text, in the order of the n-grams.

        A text with at most ``size`` words is one n-gram. A text without words counts by its
        characters.
        """
        import numpy

        if self._ignores_notices:
            text = replaced(text, licence_notices(text), repeat(""))
        words = self._split(text)
        if len(words) <= self._size:
            whole = b" ".join(words) or _encoded(text.strip())
            return numpy.array([xxhash.xxh3_64_intdigest(whole)], numpy.uint64)
        digests = b"".join(map(xxhash.xxh3_64_digest, words))
        hashes = numpy.frombuffer(digests, ">u8").astype(numpy.uint64)
        count = len(words) - self._size + 1
        total = hashes[:count] * numpy.uint64(self._factors[-1])
        for place in range(1, self._size):
            total += hashes[place : place + count] * numpy.uint64(self._factors[-1 - place])
        total ^= total >> numpy.uint64(32)  # the high bits of a product are the better ones
        total *= numpy.uint64(_MULTIPLIER)
        total ^= total >> numpy.uint64(29)
        return total

    def _split(self, text: str) -> list[bytes]:
        if self._plain and text.isascii():  # the same words, without a regular expression
            return text.encode().translate(_LOWER_WORDS).split()
        return list(map(_encoded, self._words(text.casefold())))


class MinHash:
    """Computes MinHash signatures of ``count`` values; another seed gives others."""

    def __init__(self, operator: str, count: int, seed: int) -> None:
        with needs_extra(operator, "dedup"):
            import numpy  # noqa: F401
            from rensa import RMinHash
        self._rensa, self._count, self._seed = RMinHash, count, seed

    def of(self, hashes: Hashes) -> list[int]:
        """Return the signature of the hashes of n-grams."""
        ends = array("Q", [0, len(hashes)])
        matrix = self._rensa.digest_matrix_from_flat_token_hashes(
            hashes, ends, self._count, self._seed
        )
        signature: list[int] = matrix.to_rows()[0]
        return signature


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

"""Hashes of windows of consecutive characters or words, with numpy.

Equal windows have equal hashes. Two different windows of a text have equal hashes with a
probability of about 1 in 10^19. All functions but `numpy` and `hashable` need numpy.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

_BASE: Final = 0x9E3779B97F4A7C15  # odd, so it has an inverse modulo 2^64
_FACTOR: Final = 0xD1B54A32D192ED03
_MODULUS: Final = 1 << 64
_LONGEST: Final = 1_000_000  # characters; the powers of the base take 16 bytes for each


@cache
def numpy() -> Any:
    """Return the module numpy; ``None`` if it is not installed."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def hashable(text: str) -> bool:
    """Return whether numpy is installed and the text is short enough for `WordHashes`."""
    return numpy() is not None and len(text) <= _LONGEST


def character_hashes(text: str, size: int) -> Any:
    """Return the hash of each window of ``size`` characters, in order."""
    hashes = codes = _code_points(text)
    length = 1
    for bit in bin(size)[3:]:
        hashes, length = _joined(hashes, length, hashes, length), 2 * length
        if bit == "1":
            hashes, length = _joined(hashes, length, codes, 1), length + 1
    return hashes


class WordHashes(NamedTuple):
    """Hashes of the words of a text, and of runs of words.

    Attributes:
        starts: Where each word starts in the text of all words without anything between, and the
            length of that text.
        prefixes: The hash of each beginning of that text.
        words: The hash of each word.
    """

    starts: Any
    prefixes: Any
    words: Any

    def of_runs(self, size: int) -> Any:
        """Return the hash of each run of ``size`` words; limits of words count."""
        hashes = self.words
        factor = numpy().uint64(_FACTOR)
        for number in range(1, size):
            hashes = hashes[:-1] * factor + self.words[number:]
        return hashes

    def of_joined_runs(self, size: int) -> Any:
        """Return the hash of each run of ``size`` words; limits of words do not count."""
        return _between(
            self.prefixes, self.starts[: len(self.words) - size + 1], self.starts[size:]
        )

    def length(self, start: int, end: int) -> int:
        """Return the number of characters of the words from ``start`` to before ``end``."""
        return int(self.starts[end] - self.starts[start])


def word_hashes(words: Sequence[str]) -> WordHashes:
    """Return the hashes of words that have up to 1,000,000 characters together."""
    np = numpy()
    codes = _code_points("".join(words))
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, words), np.int64, len(words)), out=starts[1:])
    prefixes = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(codes * _powers(len(codes))[0][: len(codes)], out=prefixes[1:])
    return WordHashes(starts, prefixes, _between(prefixes, starts[:-1], starts[1:]))


def counts_of(hashes: Any) -> tuple[Any, Any]:
    """Return the different hashes in ascending order, and how often each occurs."""
    np = numpy()
    ordered = np.sort(hashes)
    last = np.flatnonzero(ordered[1:] != ordered[:-1])
    last = np.concatenate((last, [len(ordered) - 1])) if len(ordered) else last
    counts = last.copy()
    counts[1:] -= last[:-1]
    counts[:1] += 1
    return ordered[last], counts


def repeated(hashes: Any) -> Any:
    """Return the hashes that occur again, in ascending order, with repetitions.

    It takes a third of the time of `counts_of`, and most n-grams do not occur again.
    """
    ordered = numpy().sort(hashes)
    later = ordered[1:]
    return later[later == ordered[:-1]]


def among(hashes: Any, few: Any) -> Any:
    """Return for each hash whether it is one of a few, at least one, in ascending order."""
    if len(few) == 1:
        return hashes == few[0]
    return few.take(few.searchsorted(hashes), mode="clip") == hashes


def _code_points(text: str) -> Any:
    """Return the code points of a text, plus 1."""
    np = numpy()
    if text.isascii():
        codes = np.frombuffer(text.encode("ascii"), np.uint8)
    else:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return codes.astype(np.uint64) + np.uint64(1)


def _joined(first: Any, length: int, second: Any, second_length: int) -> Any:
    """Return the hashes of windows that consist of two windows, one after the other."""
    factor = numpy().uint64(pow(_FACTOR, second_length, _MODULUS))
    shifted = second[length:]
    return first[: len(shifted)] * factor + shifted


def _between(prefixes: Any, starts: Any, ends: Any) -> Any:
    """Return the hashes of the characters from starts to ends."""
    return (prefixes[ends] - prefixes[starts]) * _powers(len(prefixes))[1][starts]


def _powers(number: int) -> tuple[Any, Any]:
    """Return at least ``number`` powers of the base, and as many of its inverse."""
    powers = _known.get("powers")
    if powers is None or len(powers[0]) < number:
        length = max(4096, 1 << number.bit_length())
        bases = (_BASE, pow(_BASE, -1, _MODULUS))
        first, second = (powers_of(base, length) for base in bases)
        powers = _known["powers"] = first, second
    return powers


def powers_of(base: int, number: int) -> Any:
    """Return powers of a base, from 0, modulo 2^64."""
    np = numpy()
    powers = np.full(number, base, np.uint64)
    powers[:1] = 1
    return np.cumprod(powers)


_known: Final[dict[str, tuple[Any, Any]]] = {}

"""Seeds derived from names: equal names give equal seeds in every process, on every machine."""

import random
from collections.abc import Iterator
from itertools import chain, islice
from operator import length_hint
from typing import Final

import xxhash

_BLOCK: Final = 1024  # random numbers generated at once


def derive_seed(seed: int, *names: str | int) -> int:
    """Return the 64-bit seed of ``names`` below the root seed ``seed``."""
    text = "\0".join([str(seed), *(f"{type(name).__name__}:{name}" for name in names)])
    return xxhash.xxh3_64_intdigest(text.encode(errors="surrogatepass"))


def seeded_random(seed: int, *names: str | int) -> random.Random:
    """Return a random generator with the seed of ``names`` below ``seed``."""
    return random.Random(derive_seed(seed, *names))  # noqa: S311 - not used for secrets


class RandomNumbers:
    """Random numbers in [0, 1); each depends only on the seed and on its index.

    Args:
        seed: The seed of the sequence.
        number: The number of values to skip; the cost does not depend on it.
    """

    def __init__(self, seed: int, number: int = 0) -> None:
        self._seed = seed
        self._block, self._skipped = divmod(number, _BLOCK)
        self._remaining: Iterator[float] = iter(())
        self._started = False

    def __iter__(self) -> Iterator[float]:
        return chain.from_iterable(self._blocks())

    @property
    def number(self) -> int:
        """The number of drawn numbers, including the skipped ones."""
        if not self._started:
            return self._block * _BLOCK + self._skipped
        return (self._block + 1) * _BLOCK - length_hint(self._remaining)

    def _blocks(self) -> Iterator[Iterator[float]]:
        while True:
            draw = seeded_random(self._seed, "block", self._block).random
            self._remaining = iter([draw() for _ in range(_BLOCK)])
            for _ in islice(self._remaining, self._skipped):
                pass
            self._started, self._skipped = True, 0
            yield self._remaining
            self._block += 1

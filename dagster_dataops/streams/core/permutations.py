"""Permutations of any size that can be computed piece by piece."""

import random
from math import isqrt
from typing import Final

_MAX_LIST_SIZE: Final = 1 << 16  # size up to which the permutation is a shuffled list
_ROUNDS: Final = 3


class Permutation:
    """The integers below ``size`` in random order.

    Up to 65,536 integers are a shuffled list. For more, a Feistel network over tables is used: an
    integer is written as two digits in a base of about the square root of ``size``, and each round
    shifts either digit by a random amount that depends on the other one. The tables take memory
    for six square roots of ``size`` integers.

    Args:
        size: The number of integers.
        generator: The random generator that determines the order.
    """

    def __init__(self, size: int, generator: random.Random) -> None:
        self._size = size
        self._shuffled: list[int] | None = None
        if size <= _MAX_LIST_SIZE:
            self._shuffled = list(range(size))
            generator.shuffle(self._shuffled)
            return
        self._high = isqrt(size)
        self._low = -(-size // self._high)  # high x low exceeds size by less than high
        self._tables = [
            (_table(generator, self._low, self._high), _table(generator, self._high, self._low))
            for _ in range(_ROUNDS)
        ]

    def values_at(self, places: range) -> list[int]:
        """Return the integers at ``places`` of the permutation."""
        if self._shuffled is not None:
            return [self._shuffled[place] for place in places]
        size = self._size
        return [
            value if value < size else self._walk_cycle(value) for value in self._permute(places)
        ]

    def _walk_cycle(self, number: int) -> int:
        """Apply the network again until the result is below ``size`` (cycle walking)."""
        while number >= self._size:
            (number,) = self._permute(range(number, number + 1))
        return number

    def _permute(self, places: range) -> list[int]:
        high, low = self._high, self._low
        upper, lower = [place // low for place in places], [place % low for place in places]
        for of_lower, of_upper in self._tables:
            pairs = zip(upper, lower, strict=True)
            upper = [(left + of_lower[other]) % high for left, other in pairs]
            pairs = zip(lower, upper, strict=True)
            lower = [(left + of_upper[other]) % low for left, other in pairs]
        return [left * low + other for left, other in zip(upper, lower, strict=True)]


def _table(generator: random.Random, size: int, limit: int) -> list[int]:
    return [int(generator.random() * limit) for _ in range(size)]

"""Read a source in random order without holding its items."""

import random
from collections.abc import Callable, Iterator, Sequence
from math import isqrt
from typing import Any, ClassVar, Final, Protocol, TypeAlias

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.random_access import MISSING, RandomAccess, ShardSlice
from dagster_dataops.streams.core.seeds import seeded_random
from dagster_dataops.streams.core.stage import Cursor

_MAX_LIST_SIZE: Final = 1 << 16  # size up to which the permutation is a shuffled list
_ROUNDS: Final = 3


class Permutation:
    """The integers below ``size`` in random order.

    Up to 65,536 integers are a shuffled list. For more, a Feistel network over tables is used: an
    integer is written as two digits in a base of about the square root of ``size``, and each round
    shifts either digit by a random amount that depends on the other one. The tables take memory
    for six square roots of ``size`` integers.
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


OfLast: TypeAlias = Callable[[int], range]


class Order(Protocol):
    """Numbers in an order that can be computed piece by piece."""

    def values_at(self, places: range) -> Sequence[int]:
        """Return the numbers at some places of the order."""
        ...


_BATCH_SIZE: Final = 64  # places computed together


class RandomCursor(Cursor):
    """Read a source, or one shard of it, in random order.

    The state is the seed, the epoch and the number of read places; restoring reads nothing again.
    """

    saved: ClassVar[tuple[str, ...]] = ("failed", "_seed", "_epoch", "_passed")

    def __init__(
        self, access: RandomAccess, seed: int, part: ShardSlice, *, unread: bool = False
    ) -> None:
        self._access, self._unread = access, unread
        self.counter = access.counter
        self._seed = seed
        self._part = part
        self._epoch = self._passed = 0

    @override
    def items(self) -> Iterator[Any]:
        return self.one_of_each(0, 1, lambda _: range(0))

    def one_of_each(self, offset: int, size: int, of_last: OfLast) -> Iterator[Any]:
        """Yield one item of each ``size`` in turn, and read no others.

        Args:
            offset: The place of the item among them.
            size: The number of items of a group.
            of_last: Given the number of the last items, fewer than ``size``, returns the places of
                those to yield.
        """
        with self._access.opened(unread=self._unread) as source:
            item = source.item
            order = self.order(source.size)
            places = self.places(source.size)
            while (groups := min((len(places) - self._passed) // size, _BATCH_SIZE)) > 0:
                first = self._passed + offset
                expected = self._passed
                for number in order.values_at(places[first : first + groups * size : size]):
                    if self._passed != expected:
                        break  # items were passed over
                    expected = self._passed = self._passed + size
                    element = item(number)
                    if element is not MISSING:
                        yield element
            self._passed = min(self._passed, len(places))
            last = places[self._passed :]
            self._passed += len(last)
            chosen = of_last(len(last))
            yield from map(item, order.values_at(last[chosen.start : chosen.stop]))

    def places(self, size: int) -> range:
        """Return the places of the order that this cursor reads, of a source of ``size`` items."""
        return self._part.places(size)

    def order(self, size: int) -> Order:
        """Return the order of the numbers below ``size`` in the present epoch."""
        return Permutation(size, seeded_random(self._seed, self._epoch, 0))

    def pass_over(self, count: int) -> None:
        """Go on behind the next ``count`` items without reading them.

        Only if failed items end the stream: those that are passed over are not found.
        """
        self._passed += count

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._epoch = 0 if reset_rng else self._epoch + 1
        self._passed = 0

"""Read a source in random order without holding its items."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.streams.core.permutations import Permutation
from dagster_dataops.streams.core.random_access import MISSING, RandomAccess, ShardSlice
from dagster_dataops.streams.core.seeds import seeded_random
from dagster_dataops.streams.core.stage import Cursor

_BATCH_SIZE: Final = 256  # places computed together


class RandomCursor(Cursor):
    """Read a source, or one shard of it, in random order.

    The state is the seed, the epoch and the number of read places; restoring reads nothing again.
    """

    saved: ClassVar[tuple[str, ...]] = ("failed", "_seed", "_epoch", "_passed")

    def __init__(self, access: RandomAccess, seed: int, part: ShardSlice) -> None:
        self._access = access
        self.counter = access.counter
        self._seed = seed
        self._part = part
        self._epoch = self._passed = 0

    @override
    def items(self) -> Iterator[Any]:
        with self._access.opened() as source:
            item, size = source.item, source.size
            order = Permutation(size, seeded_random(self._seed, self._epoch, 0))
            places = self._part.places(size)
            while values_at := order.values_at(places[self._passed : self._passed + _BATCH_SIZE]):
                for number in values_at:
                    self._passed += 1
                    found = item(number)
                    if found is not MISSING:
                        yield found

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._epoch = 0 if reset_rng else self._epoch + 1
        self._passed = 0

"""``shuffle``: yield items in random order, one window at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.streams.core.random_access import ShardSlice
from dagster_dataops.streams.core.seeds import derive_seed, seeded_random
from dagster_dataops.streams.core.stage import Cursor, ReadContext, State, UnaryCursor, UnaryStage
from dagster_dataops.streams.stages.random_order import RandomCursor


@dataclass(frozen=True, eq=False)
class Shuffle(UnaryStage):
    """Shuffle windows of ``shuffle_window`` items; 0 shuffles all items.

    With 0 and a source with random access, the indices are shuffled and no items are held.
    """

    name: ClassVar[str] = "shuffle"
    shuffle_window: int
    seed: int | None

    @override
    def open_part(self, context: ReadContext, part: ShardSlice) -> Cursor | None:
        access = None if self.shuffle_window else self.upstream.access(context)
        return None if access is None else RandomCursor(access, self.seed_in(context.seed), part)

    @override
    def open(self, context: ReadContext) -> Cursor:
        whole = self.open_part(context, ShardSlice())
        if whole is not None:
            return whole
        upstream = self.upstream.open(context)
        if self.shuffle_window == 1:
            return upstream
        return ShuffleCursor(upstream, self.shuffle_window, self.seed_in(context.seed))

    @override
    def seed_in(self, root: int) -> int:
        """Return the seed of the stage in a stream of seed ``root``."""
        return derive_seed(root, self.path) if self.seed is None else self.seed


class ShuffleCursor(UnaryCursor):
    """The state is the position before the window, and the number of its yielded items.

    The order of a window depends on the seed, the epoch and the number of the window. Restoring
    reads the window again, so states stay small.
    """

    def __init__(self, upstream: Cursor, window: int, seed: int) -> None:
        super().__init__(upstream)
        self._window, self._seed = window or None, seed
        self._epoch = self._number = self._skipped = 0
        self._before: State = None  # the input's state before the window; None between windows
        self._remaining: Any = iter(())
        self._length = 0

    @override
    def items(self) -> Iterator[Any]:
        upstream = self.upstream.items()
        while True:
            before = [self.upstream.state()]
            window = list(islice(upstream, self._window))
            if not window:
                return
            seeded_random(self._seed, self._epoch, self._number).shuffle(window)
            self._before, self._remaining, self._length = before, iter(window), len(window)
            for _ in islice(self._remaining, self._skipped):
                pass
            self._skipped = 0
            yield from self._remaining
            self._number += 1
            self._before, self._length = None, 0

    @override
    def state(self) -> State:
        place = [self._seed, self._epoch, self._number]
        if self._before is None:
            return [*place, self._skipped, self.upstream.state()]
        return [*place, self._length - self._remaining.__length_hint__(), self._before[0]]

    @override
    def restore(self, state: State) -> None:
        self._seed, self._epoch, self._number, self._skipped, inner = state
        self._before, self._remaining, self._length = None, iter(()), 0
        self.upstream.restore(inner)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        if self._before is not None:
            self.upstream.restore(self._before[0])
        self._epoch = 0 if reset_rng else self._epoch + 1
        self._number = self._skipped = self._length = 0
        self._before, self._remaining = None, iter(())
        super().restart(reset_rng=reset_rng)

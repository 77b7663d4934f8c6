"""``shuffle``: yield items in random order, one window at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from typing import Any, ClassVar

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.random_access import ShardSlice
from dagster_dataops.streams.core.seeds import derive_seed, seeded_random
from dagster_dataops.streams.core.stage import Cursor, ReadContext, State, UnaryStage
from dagster_dataops.streams.core.transparent import TransparentCursor
from dagster_dataops.streams.stages.random_order import RandomCursor


@dataclass(eq=False)
class Shuffle(UnaryStage):
    """Shuffle windows of ``shuffle_window`` items; 0 shuffles all items.

    With 0 and a source with random access, the indices are shuffled and no items are held. Else
    the position before the window is saved, and the number of its yielded items. The order of a
    window depends on the seed, the epoch and the number of the window. Restoring reads the window
    again, so states stay small.
    """

    name: ClassVar[str] = "shuffle"
    keeps_step: ClassVar[bool] = True
    takes_unread: ClassVar[bool] = True
    saved: ClassVar[tuple[str, ...]] = ("_seed", "_epoch", "_number", "yielded")
    shuffle_window: int
    seed: int | None

    @override
    def open_part(self, context: ReadContext, part: ShardSlice) -> Cursor | None:
        access = None if self.shuffle_window else self.upstream.access(context)
        if access is None:
            return None
        return RandomCursor(access, self.seed_in(context.seed), part, unread=context.unread)

    @override
    def open(self, context: ReadContext) -> Cursor:
        whole = self.open_part(context, ShardSlice())
        if whole is not None:
            return whole
        if self.shuffle_window == 1:
            return TransparentCursor(self.upstream.open(context.of_input(self.upstream)))
        return super().open(context)

    @override
    def is_elastic(self) -> bool:
        return self.shuffle_window == 1

    @override
    def seed_in(self, root: int) -> int:
        return derive_seed(root, self.path) if self.seed is None else self.seed

    @override
    def begin(self, context: ReadContext) -> None:
        self._seed, self._epoch = self.seed_in(context.seed), 0

    @override
    def reset(self) -> None:
        self._number = self._skipped = self._length = 0
        self._before: list[State] | None = None  # the input's state before the window
        self._remaining: Iterator[Any] = iter(())

    @property
    def yielded(self) -> int:
        """The number of yielded items of the window."""
        return (
            self._skipped if self._before is None else self._length - length_hint(self._remaining)
        )

    @yielded.setter
    def yielded(self, count: int) -> None:
        self._skipped = count

    @override
    def states_before(self) -> list[State] | None:
        return self._before

    @override
    def items(self) -> Iterator[Any]:
        items = self.source.items()
        while True:
            before = [self.source.state()]
            window = list(islice(items, self.shuffle_window or None))
            if not window:
                return
            seeded_random(self._seed, self._epoch, self._number).shuffle(window)
            self._before, self._remaining, self._length = before, iter(window), len(window)
            for _ in islice(self._remaining, self._skipped):
                pass
            self._skipped = 0
            yield from self._remaining
            self._number += 1
            self._before = None

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        epoch = 0 if reset_rng else self._epoch + 1
        super().restart(reset_rng=reset_rng)
        self._epoch = epoch

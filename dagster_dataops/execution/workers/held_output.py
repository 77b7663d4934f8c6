"""Holding: finished output that waits, for a moment, to learn its place in the result.

Where a range's output belongs is known once everything before it is finished. Quick ranges are
finished in about their order, so that their output is written once, where it belongs. Whatever
waits too long goes to the worker's own segment instead, so that it is safe.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dagster_dataops.checkpoints.journal.settled_span import Settled
from dagster_dataops.execution.workers.protocol import Done

HOLD_SECONDS: Final = 0.5
_MOST_RANGES: Final = 4


@dataclass
class HeldRange:
    """The output of one range.

    Attributes:
        start: Where the range starts in the input.
        settled: Its spans so far.
        since: When the first of them was finished; a monotonic time.
        done: What is done of the range; ``None`` while it is worked on.
    """

    start: int
    settled: list[Settled] = field(default_factory=list)
    since: float = math.inf
    done: Done | None = None

    def add(self, settled: Settled) -> None:
        """Take another span."""
        if not self.settled:
            self.since = time.monotonic()
        self.settled.append(settled)


class Holding:
    """What a worker holds.

    Args:
        spill: Settles a range in the worker's own segment.
    """

    def __init__(self, spill: Callable[[HeldRange], None]) -> None:
        self._spill = spill
        self._ranges: dict[int, HeldRange] = {}

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def begin(self, start: int) -> HeldRange:
        """Hold what a range that begins now will bring."""
        held = self._ranges[start] = HeldRange(start)
        return held

    def holds(self, held: HeldRange) -> bool:
        """Whether ``held`` is still waiting."""
        return self._ranges.get(held.start) is held

    def take(self, start: int) -> HeldRange | None:
        """Return a range that waits no more, its place being known; ``None`` if it was spilled."""
        return self._ranges.pop(start, None)

    @property
    def full(self) -> bool:
        """Whether so much is held that a place should be waited for before more is done."""
        return len(self._ranges) > _MOST_RANGES

    @property
    def patience(self) -> float:
        """For how many seconds the oldest output may still wait."""
        oldest = min((held.since for held in self._ranges.values()), default=math.inf)
        return max(0.0, oldest + HOLD_SECONDS - time.monotonic())

    @property
    def patience_ms(self) -> float:
        """The same, for a poll: a moment longer, so that it is over then."""
        return 1000 * min(self.patience, HOLD_SECONDS) + 1

    def spill_overdue(self) -> None:
        """Settle what has waited too long."""
        while self._ranges and not self.patience:
            self.spill(next(iter(self._ranges)))

    def spill(self, start: int) -> None:
        """Settle one range."""
        held = self._ranges.pop(start)
        self._spill(held)

    def spill_all(self) -> None:
        """Settle everything."""
        for start in list(self._ranges):
            self.spill(start)

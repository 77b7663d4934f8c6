"""LeaseSchedule: lease the unsettled parts of an input to agents.

Each unsettled byte is either free, or leased to one agent. A lease may be revoked, and its bytes
leased again, while its agent still works: the first span of a record counts, and any later span is
refused. A refused span may hold records that are still unsettled. They are free again when its
agent reports that it has finished them.
"""

from collections.abc import Hashable
from itertools import chain
from typing import Final

from dagster_dataops.datasets.batches import BatchStarts, cut_near
from dagster_dataops.datasets.lines import Interval, count_records
from dagster_dataops.execution.agent_pool import Lease
from dagster_dataops.execution.leases.interval_set import IntervalSet
from dagster_dataops.foundation.places.range_source import Readable

_MOST_STRETCHES: Final = 1000


class LeaseSchedule:
    """The unsettled input, and its leases.

    Args:
        descriptor: The open input.
        todo: The unsettled intervals.
        batches: Where leases may be cut, if the operator takes batches; otherwise at any line.
    """

    def __init__(
        self, descriptor: Readable, todo: list[Interval], batches: BatchStarts | None = None
    ) -> None:
        self._descriptor = descriptor
        self._batches = batches
        self._open = IntervalSet(todo)
        self._free = IntervalSet(todo)
        self._leased: dict[Hashable, IntervalSet] = {}

    def __bool__(self) -> bool:
        """Return whether there are unsettled records."""
        return bool(self._open)

    @property
    def free(self) -> int:
        """Unsettled bytes that are not leased."""
        return self._free.size

    def leased(self, agent: Hashable) -> int:
        """Return the number of unsettled bytes that an agent holds."""
        return self._held_by(agent).size

    def _held_by(self, agent: Hashable) -> IntervalSet:
        return self._leased.setdefault(agent, IntervalSet())

    def take(self, agent: Hashable, size: int) -> Lease | None:
        """Lease about ``size`` bytes to an agent; ``None`` if no byte is free."""
        stretches: list[Interval] = []
        while self._free and size > 0 and len(stretches) < _MOST_STRETCHES:
            start, end = self._free.pop()
            cut = cut_near(self._descriptor, start, size, end, self._batches)
            self._free.add(cut, end)
            stretches.append(Interval(start, cut))
            self._held_by(agent).add(start, cut)
            size -= cut - start
        if not stretches:
            return None
        batches = [] if self._batches is None else map(self._batches.within, stretches)
        return Lease(stretches, list(chain.from_iterable(batches)))

    def accept(self, agent: Hashable, start: int, end: int) -> bool:
        """Note a span of an agent; return whether it counts, because it is the first."""
        if not self._open.covers(start, end):
            return False
        self._open.remove(start, end)
        held_here = self._held_by(agent)
        if held_here.covers(start, end):  # the usual case
            held_here.remove(start, end)
            return True
        self._free.remove(start, end)
        for held in self._leased.values():
            held.remove(start, end)
        return True

    def finish(self, agent: Hashable, start: int, end: int) -> None:
        """Count every record of [start, end) as settled by an agent.

        Bytes that stay unsettled are blank lines, or belong to a refused span.
        """
        held = self._held_by(agent)
        for part in held.within(start, end):
            held.remove(*part)
            for rest in self._open.within(*part):
                if count_records(self._descriptor, rest):
                    self._free.add(*rest)
                else:
                    self._open.remove(*rest)

    def give_back(self, agent: Hashable, start: int, end: int) -> None:
        """Free [start, end), as far as an agent holds it."""
        held = self._held_by(agent)
        for part in held.within(start, end):
            held.remove(*part)
            self._free.add(*part)

    def revoke(self, agent: Hashable) -> None:
        """Free everything that an agent holds."""
        for part in self._leased.pop(agent, IntervalSet()):
            self._free.add(*part)

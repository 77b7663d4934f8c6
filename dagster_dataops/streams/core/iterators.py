"""``read_iterator``: a source that reads an iterator given by the caller."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import ReadContext, SourceStage, State


@dataclass(eq=False)
class IteratorSource(SourceStage):
    """Yield the items of an iterator; ``reset_fn`` returns it to its start.

    An iterator with ``state_dict`` and ``load_state_dict`` is restored by these. For any other
    iterator the items are counted, and restoring reads that many again.
    """

    name: ClassVar[str] = "read_iterator"
    saved: ClassVar[tuple[str, ...]] = ("_number", "position")
    iterator: Iterator[Any]
    reset_fn: Callable[[Iterator[Any]], Iterator[Any]]
    infinite: bool

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.INFINITE if self.infinite else Finitude.FINITE

    @override
    def options(self) -> dict[str, Any]:
        return {
            "iterator": type(self.iterator).__qualname__,
            "reset_fn": self.reset_fn,
            "infinite": self.infinite,
        }

    @override
    def begin(self, context: ReadContext) -> None:
        self._open: Any = None

    @override
    def reset(self) -> None:
        self._number = 0
        self._position: State = None

    @property
    def position(self) -> State:
        """The position of an iterator that has one of its own."""
        if self._open is None:
            return self._position
        has_state = hasattr(self._open, "load_state_dict")
        return copy.deepcopy(self._open.state_dict()) if has_state else None

    @position.setter
    def position(self, position: State) -> None:
        self._open, self._position = None, position

    @override
    def items(self) -> Iterator[Any]:
        if self._open is None:
            self._open = self.reset_fn(_private_copy(self.iterator))
            self._restore_position()
        for item in self._open:
            self._number += 1
            yield item

    def _restore_position(self) -> None:
        if self._position is not None:
            self._open.load_state_dict(self._position)
            return
        passed = sum(1 for _ in islice(self._open, self._number))
        if passed < self._number:
            count = counted(passed, "items")
            msg = f"the iterator ends after {count}, but the state is at item {self._number}"
            raise DataPipelineError(msg)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        if self._open is not None:
            self._open = self.reset_fn(self._open)
        super().restart(reset_rng=reset_rng)


def _private_copy(iterator: Any) -> Any:
    """Return a copy, so that two streams of one iterator do not share its position."""
    try:
        return copy.deepcopy(iterator)
    except Exception:  # noqa: BLE001 - generators and many other iterators cannot be copied
        return iterator

"""``read_iterator``: a source that reads an iterator given by the caller."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import Cursor, ReadContext, Stage, State


@dataclass(frozen=True, eq=False)
class IteratorSource(Stage):
    """Yield the items of an iterator; ``reset_fn`` returns it to its start."""

    name: ClassVar[str] = "read_iterator"
    iterator: Iterator[Any]
    reset_fn: Callable[[Iterator[Any]], Iterator[Any]]
    infinite: bool

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.INFINITE if self.infinite else Finitude.FINITE

    @override
    def open(self, context: ReadContext) -> Cursor:
        return IteratorCursor(self)

    @override
    def options(self) -> dict[str, Any]:
        return {
            "iterator": type(self.iterator).__qualname__,
            "reset_fn": self.reset_fn,
            "infinite": self.infinite,
        }


class IteratorCursor(Cursor):
    """Read an iterator.

    An iterator with ``state_dict`` and ``load_state_dict`` is restored by these. For any other
    iterator the items are counted, and restoring reads that many again.
    """

    def __init__(self, stage: IteratorSource) -> None:
        self._stage = stage
        self._iterator: Any = None
        self._number = 0
        self._position: State = None

    @override
    def items(self) -> Iterator[Any]:
        if self._iterator is None:
            self._iterator = self._stage.reset_fn(_private_copy(self._stage.iterator))
            self._restore_position()
        for item in self._iterator:
            self._number += 1
            yield item

    def _restore_position(self) -> None:
        if self._position is not None:
            self._iterator.load_state_dict(self._position)
            return
        passed = sum(1 for _ in islice(self._iterator, self._number))
        if passed < self._number:
            msg = f"the iterator ends after {passed} items, but the state is at item {self._number}"
            raise DataPipelineError(msg)

    @override
    def state(self) -> State:
        if self._iterator is None:
            return [self._number, self._position]
        has_state = hasattr(self._iterator, "load_state_dict")
        return [self._number, copy.deepcopy(self._iterator.state_dict()) if has_state else None]

    @override
    def restore(self, state: State) -> None:
        self._iterator = None
        self._number, self._position = state

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        if self._iterator is not None:
            self._iterator = self._stage.reset_fn(self._iterator)
        self._number, self._position = 0, None


def _private_copy(iterator: Any) -> Any:
    """Return a copy, so that two streams of one iterator do not share its position."""
    try:
        return copy.deepcopy(iterator)
    except Exception:  # noqa: BLE001 - generators and many other iterators cannot be copied
        return iterator

"""``pack``: join sequences of numbers to packs of a fixed number of elements."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.stage import State, UnaryStage
from dagster_dataops.streams.stages.grouping.arrays import is_sequence, joined

_END: Final = object()


@dataclass(eq=False)
class PackSequences(UnaryStage):
    """Join sequences to packs of ``num_elements`` elements.

    The position before the sequence that a pack ended in is saved, and the number of its elements
    that were packed. No element is held in the state.
    """

    name: ClassVar[str] = "pack"
    saved: ClassVar[tuple[str, ...]] = ("failed", "used")
    left_out: ClassVar[frozenset[str]] = frozenset({"pinned_memory"})
    num_elements: int
    max_seq_len: int
    pad_value: float
    truncate: bool
    drop_remainder: bool
    pinned_memory: bool

    @override
    def reset(self) -> None:
        self.used = 0
        self._rest: Any = None
        self._before: State = None

    @override
    def states_before(self) -> list[State] | None:
        return None if self._rest is None else [self._before]

    @override
    def items(self) -> Iterator[Any]:
        upstream = self.source.items()
        while parts := self._parts(upstream):
            seqs = joined(parts, self.num_elements, self.pad_value, pinned=self.pinned_memory)
            yield {"seqs": seqs, "seq_lens": list(map(len, parts))}

    def _parts(self, upstream: Iterator[Any]) -> list[Any]:
        """Return the parts of the next pack; none at the end."""
        parts: list[Any] = []
        room = self.num_elements
        while room:
            sequence = self._next(upstream, parts)
            if sequence is None:
                return [] if self.truncate and self.drop_remainder else parts
            size = min(len(sequence), self.max_seq_len, room)
            if size < len(sequence):
                if not self.truncate:
                    self._rest = sequence
                    return parts
                # The next pack begins with the last element of this one: a language model
                # predicts each element from the one before.
                packed = size - 1 if size == room else size
                self.used += packed
                self._rest = sequence[packed:]
                sequence = sequence[:size]
            else:
                self.used = 0
            parts.append(sequence)
            room -= size
        return parts

    def _next(self, upstream: Iterator[Any], parts: list[Any]) -> Any:
        """Return the next sequence that has an element, or its rest; ``None`` at the end."""
        if self._rest is not None:
            chosen, self._rest = self._rest, None
            return chosen
        last = self.counter.before
        while True:
            self._before = self.source.state()
            item: Any = next(upstream, _END)
            if item is _END:
                self.counter.end(last)
                return None
            try:
                self._check(item, parts)
            except DataPipelineError as error:
                last = self.counter.handle(item, error, last)
                continue
            last = None
            if len(item):
                self.counter.end(None)
                return item[self.used :] if self.used else item

    def _check(self, item: Any, parts: list[Any]) -> None:
        """Check that an item can be packed."""
        kind = type(item).__name__
        if not is_sequence(item):
            shape = f" of shape {tuple(item.shape)}" if hasattr(item, "shape") else ""
            msg = f"pack: an item is a {kind}{shape}; it must have one dimension of numbers"
            raise DataPipelineError(msg)
        if parts and type(parts[0]) is not type(item):
            msg = f"pack: an item is a {kind}, and the one before a {type(parts[0]).__name__}"
            raise DataPipelineError(msg)
        if not self.truncate and len(item) > self._longest:
            msg = (
                f"pack: an item has {len(item):,} elements, more than {self._longest:,} "
                "(max_seq_len and num_elements); truncate=True divides it"
            )
            raise DataPipelineError(msg)

    @property
    def _longest(self) -> int:
        return min(self.max_seq_len, self.num_elements)

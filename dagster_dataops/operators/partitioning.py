"""`Partitioning`: how a selection decides in partitions, each of which is work for a process.

The sketches are cut into ranges in input order, and each range is split into partitions. Each
partition is decided alone, and each range then gets its verdicts. What one step leaves to the next
are bytes, which are written once: a killed run loses the ranges and partitions in work.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

Parts = Sequence[bytes]


class Partitioning(Protocol):
    """Decides over sketches in partitions. The result is that of ``keep`` over all of them.

    Attributes:
        max_bytes: Memory that all processes together may use for it.
    """

    max_bytes: int

    def partitions(self, sketch_bytes: int, memory: int) -> int:
        """Return the number of partitions.

        Args:
            sketch_bytes: The bytes of all sketches as JSON.
            memory: Bytes of memory for one partition.
        """
        ...

    def split(self, sketches: Iterator[Any], partitions: int) -> tuple[Parts, bytes]:
        """Split a range of sketches; return its part of each partition, and what `verdicts` needs.

        Args:
            sketches: The sketches of the range, in input order.
            partitions: The number of partitions.
        """
        ...

    def decide(self, parts: Parts, scratch: Path, memory: int) -> Iterable[bytes]:
        """Return for each range what a partition has decided for it.

        Args:
            parts: The part of each range, in input order. Each access reads it from disk.
            scratch: An empty folder.
            memory: Bytes of memory that it may use.
        """
        ...

    def verdicts(self, decided: Parts, rest: bytes) -> Iterator[Any]:
        """Yield the verdicts of a range.

        Args:
            decided: What each partition has decided for it.
            rest: What `split` returned for it.
        """
        ...


@runtime_checkable
class Partitioned(Protocol):
    """A selection operator that can decide in partitions."""

    def partitioning(self) -> Partitioning | None:
        """Return how it decides in partitions; ``None`` if it cannot with its options."""
        ...

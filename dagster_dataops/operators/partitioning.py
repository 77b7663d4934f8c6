"""`Partitioning`: how a selection decides in partitions, each of which is work for a process.

The sketches are cut into ranges in input order, and each range is split into partitions. Each
partition is decided alone, and each range then gets its verdicts. Each step writes its results
once, as bytes, for the next step: a killed run repeats only the ranges and partitions in work.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from dagster_dataops.records import Record

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

    def split(self, sketches: Iterator[Any], partitions: int) -> tuple[Parts, bytes]:
        """Split a range of sketches; return its part of each partition, and bytes for `verdicts`.

        Args:
            sketches: The sketches of the range, in input order.
            partitions: The number of partitions.
        """

    def decide(self, parts: Parts, scratch: Path, memory: int) -> Iterable[bytes]:
        """Return the decisions of a partition for each range.

        Args:
            parts: The part of each range, in input order. Each access reads it from disk.
            scratch: An empty folder.
            memory: Bytes of memory that it may use.
        """

    def verdicts(self, decided: Parts, rest: bytes) -> Iterator[Any]:
        """Yield the verdicts of a range.

        Args:
            decided: The decisions of each partition for it; after `JoinedPartitioning.join`, what
                that returned for it.
            rest: The second result of `split` for it.
        """


@runtime_checkable
class JoinedPartitioning(Partitioning, Protocol):
    """A `Partitioning` in which a record is in several partitions.

    One task joins what the partitions have found. They should leave it little to do.
    """

    def join(
        self, decided: Iterable[Parts], rests: Parts, scratch: Path, memory: int
    ) -> Iterable[bytes]:
        """Return the decisions of all partitions together, for each range.

        Args:
            decided: What `decide` returned, of one partition after the other.
            rests: The second result of `split` for each range.
            scratch: An empty folder.
            memory: Bytes of memory that it may use.
        """


@runtime_checkable
class Partitioned(Protocol):
    """A selection operator that can decide in partitions."""

    def __dataops_partitioning__(self) -> Partitioning | None:
        """Return how it decides in partitions; ``None`` if it cannot with its options."""


Entry = tuple[bytes, bytes]
"""A key that gives the place in the result, and lines of the result.

Bytes without a line end are no lines but the message of a ``ValueError``, for a record that cannot
be processed.
"""


class Plan(NamedTuple):
    """The partitions of the inputs.

    Attributes:
        partitions: Their number.
        cuts: Keys between the partitions, if these are ranges of keys.
    """

    partitions: int
    cuts: tuple[bytes, ...] = ()


class Regrouping(Protocol):
    """Makes the result of a dataset operator in partitions of its inputs.

    Attributes:
        max_bytes: Memory that all processes together may use for it.
        in_order: Whether the results of the partitions follow one another; else their entries are
            merged by their keys.
    """

    max_bytes: int
    in_order: bool

    def plan(self, size: int, memory: int, sampled: Callable[[], Iterator[Record]]) -> Plan:
        """Return the partitions; always the same for the same inputs.

        Args:
            size: The bytes of all inputs.
            memory: Bytes of memory for one partition.
            sampled: Yields some records of the first input.
        """

    def split(self, numbered: Iterator[tuple[int, Record]], at: int, plan: Plan) -> Parts:
        """Return the part of each partition of a range of an input.

        Args:
            numbered: The records, with their numbers among all, which rise.
            at: The number of the input.
            plan: The partitions.
        """

    def work(self, parts: Sequence[Parts], scratch: Path, memory: int) -> Iterator[Entry]:
        """Yield the entries of a partition, in the order of their keys.

        Args:
            parts: For each input the part of each range, in input order; each access reads it.
            scratch: An empty folder.
            memory: Bytes of memory that it may use.
        """


@runtime_checkable
class Regrouped(Protocol):
    """A dataset operator that can work in partitions."""

    def __dataops_regrouping__(self, sizes: Sequence[int]) -> Regrouping | None:
        """Return how it works in partitions; ``None`` if one thread is better.

        Args:
            sizes: The bytes of each input.
        """

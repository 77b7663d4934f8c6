"""The workloads, by the names for ``--only``."""

from collections.abc import Callable, Iterator

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.workloads import (
    calling,
    chained,
    checkpointing,
    cleaning,
    deduplicating,
    facing,
    memory,
    passing,
    resuming,
    rivals,
    starting,
    streaming,
    trivial,
)

WORKLOADS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "W1": trivial.measure,
    "W2": cleaning.measure,
    "W3": chained.measure,
    "chain": passing.measure,
    "W4": calling.measure,
    "W5": memory.measure,
    "W6": resuming.measure,
    "W7": starting.measure,
    "FACE": facing.measure,
    "dedup": deduplicating.measure,
    "checkpoint": checkpointing.measure,
    "streams": streaming.measure,
    "peers": rivals.measure,
}

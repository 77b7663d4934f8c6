"""The workloads, by the names for ``--only``."""

from collections.abc import Callable, Iterator

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.workloads import (
    asking,
    batching,
    calling,
    chained,
    checkpointing,
    cleaning,
    deduplicating,
    facing,
    killing,
    memory,
    operating,
    passing,
    preparing,
    resembling,
    resuming,
    rivals,
    sampling,
    scaling,
    sharing,
    starting,
    storing,
    streaming,
    trivial,
)

WORKLOADS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "W1": trivial.measure,
    "W2": cleaning.measure,
    "W3": chained.measure,
    "chain": passing.measure,
    "batches": batching.measure,
    "W4": calling.measure,
    "calls": asking.measure,
    "W5": memory.measure,
    "W6": resuming.measure,
    "W7": starting.measure,
    "FACE": facing.measure,
    "dedup": deduplicating.measure,
    "library": operating.measure,
    "near": resembling.measure,
    "pretraining": preparing.measure,
    "checkpoint": checkpointing.measure,
    "store": storing.measure,
    "scale": scaling.measure,
    "streams": streaming.measure,
    "workers": sharing.measure,
    "crude": sampling.measure,
    "peers": rivals.measure,
    "kill": killing.measure,
}

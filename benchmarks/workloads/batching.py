"""Calls that take the same time for one record and for 64: one by one, and in batches."""

from collections.abc import Iterator

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import median, ours, ratio


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield how much less time batches take."""
    rows = bench.size(12_800, 2_560)
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    single = {"_concurrency_mode": "single"}
    runs = bench.in_turn(
        {
            "batches": ours(source, ("score_batch", {"_batch_size": 64, **single})),
            "one by one": ours(source, ("score", single)),
        }
    )
    yield Figure(
        workload="batches",
        name=f"{rows:,} records, a call of 4 ms, 64 in a batch",
        value=ratio(runs["one by one"], runs["batches"]),
        unit="times as fast",
        least=30,
        note=f"{rows / median(runs['batches']):,.0f} records/s",
        runs=runs,
    )

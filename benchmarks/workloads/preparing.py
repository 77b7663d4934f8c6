"""The ready pretraining pipeline of 24 steps, as nodes and as chains."""

from collections.abc import Iterator

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, median, ratio

_ROWS = 1_000


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the speed of the pipeline in both forms, whose results are compared."""
    source = bench.source(f"prose{_ROWS}", corpus.prose(_ROWS))
    contenders = {
        name: Contender("benchmarks.pretraining", {"source": str(source), "chained": chained})
        for name, chained in (("nodes", False), ("chains", True))
    }
    runs = bench.in_turn(contenders)
    for name, found in runs.items():
        cpu = median(found, lambda run: run.cpu_seconds)
        yield Figure(
            workload="pretraining",
            name=f"24 steps as {name}, {_ROWS:,} documents",
            value=_ROWS / median(found),
            unit="records/s",
            note=f"{median(found):.1f} s, {_ROWS / cpu:,.0f} records/CPU s, "
            f"{found[0].facts['kept']:,} pieces",
            runs={name: found},
        )
    yield Figure(
        workload="pretraining",
        name="CPU of chains over nodes",
        value=ratio(runs["chains"], runs["nodes"], lambda run: run.cpu_seconds),
        unit="x",
        most=1.0,
        runs=runs,
    )

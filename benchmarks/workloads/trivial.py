"""W1: upper-case one field. Nearly all of it is what an engine adds to the operator."""

from collections.abc import Iterator

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Run, ideal, median, ours, ratio


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures."""
    yield from against_ideal(bench, bench.size(500_000, 100_000), bench.workers, 0.85)
    yield from against_ideal(bench, 20_000, 1, 0.7)


def against_ideal(bench: Bench, rows: int, workers: int, goal: float) -> Iterator[Figure]:
    """Yield process mode's share of the ideal, which runs on ``workers`` processes."""
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    node = ("upper", {"_concurrency_mode": "process", "_max_workers": bench.workers})
    runs = bench.in_turn(
        {"ideal": ideal(source, "upper", workers=workers), "ours": ours(source, node)}
    )
    cpu = ratio(runs["ideal"], runs["ours"], _cpu)
    yield Figure(
        workload="W1",
        name=f"{rows:,} records, ideal on {workers}",
        value=ratio(runs["ideal"], runs["ours"]),
        unit="of ideal",
        least=goal,
        note=f"{rows / median(runs['ours']):,.0f} records/s, CPU {cpu:.2f} of ideal",
        runs=runs,
    )


def _cpu(run: Run) -> float:
    return run.cpu_seconds

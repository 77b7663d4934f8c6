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
    """Yield process mode's share of the ideal, which runs on ``workers`` processes.

    Then the same of an ideal script that does what no result of ours goes without: a look at every
    value for what JSON cannot hold, a digest of the file as it is read back, and a sync.
    """
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    node = ("upper", {"_concurrency_mode": "process", "_max_workers": bench.workers})
    runs = bench.in_turn(
        {
            "ideal": ideal(source, "upper", workers=workers),
            "promised": ideal(source, "upper", workers=workers, promised=True),
            "ours": ours(source, node),
        }
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
    yield Figure(
        workload="W1",
        name=f"{rows:,} records, a script that checks and syncs",
        value=ratio(runs["ideal"], runs["promised"]),
        unit="of ideal",
        note=f"ours is {ratio(runs['promised'], runs['ours']):.2f} of that",
    )


def _cpu(run: Run) -> float:
    return run.cpu_seconds

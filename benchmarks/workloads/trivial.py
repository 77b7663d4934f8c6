"""W1: upper-case one field. Nearly all of the time is the overhead of the engine."""

from collections.abc import Iterator

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.limit import against_limit
from benchmarks.measuring import ours


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures."""
    yield from against_ideal(bench, bench.size(500_000, 100_000), bench.workers, 0.85)
    yield from against_ideal(bench, 20_000, 1, 0.7)


def against_ideal(bench: Bench, rows: int, workers: int, goal: float) -> Iterator[Figure]:
    """Yield process mode's share of the ideal, which runs on ``workers`` processes."""
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    node = ("upper", {"_concurrency_mode": "process", "_max_workers": bench.workers})
    contender = ours(source, node)
    name = f"ideal on {workers}"
    yield from against_limit(
        bench, "W1", name, source, rows, ["upper"], contender, workers=workers, goal=goal
    )

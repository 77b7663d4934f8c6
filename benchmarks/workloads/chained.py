"""W3: a filter, one record to three, exact deduplication of them all; every result written."""

from collections.abc import Iterator
from statistics import median as middle

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.limit import against_limit
from benchmarks.measuring import Run, ours

_PASSES = ("keep", "triple", "unique")


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the share of the ideal, of the whole and of each pass."""
    yield from against_ideal(bench, bench.size(500_000, 50_000), 0.85)


def against_ideal(bench: Bench, rows: int, goal: float) -> Iterator[Figure]:
    """Yield the pipeline's share of the ideal, then each node's."""
    source = bench.source(f"questions{rows}", corpus.questions(rows))
    settings = {"_concurrency_mode": "process", "_max_workers": bench.workers}
    nodes = [
        ("keep", settings),
        ("triple", settings),
        ("dedup.Exact", {"input_key": "text", **settings}),
    ]
    figures = against_limit(
        bench,
        "W3",
        "three nodes",
        source,
        rows,
        _PASSES,
        ours(source, *nodes),
        workers=bench.workers,
        goal=goal,
    )
    whole = next(figures)
    yield whole
    yield from figures
    for number, name in enumerate(_PASSES):
        pairs = zip(whole.runs["ideal"], whole.runs["ours"], strict=True)
        share = middle(_each(right, number) / _each(mine, number) for right, mine in pairs)
        yield Figure("W3", f"of that, {name}", share, "of ideal")


def _each(run: Run, number: int) -> float:
    return float(run.facts["each"][number])

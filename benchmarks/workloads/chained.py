"""W3: a filter, one record to three, exact deduplication of them all; every result written."""

from collections.abc import Iterator
from statistics import median as middle

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Run, ideal, median, ours, ratio

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
    runs = bench.in_turn(
        {
            "ideal": ideal(source, *_PASSES, workers=bench.workers),
            "promised": ideal(source, *_PASSES, workers=bench.workers, promised=True),
            "ours": ours(source, *nodes),
        }
    )
    cpu = ratio(runs["ideal"], runs["ours"], lambda run: run.cpu_seconds)
    yield Figure(
        workload="W3",
        name=f"{rows:,} records, three nodes",
        value=ratio(runs["ideal"], runs["ours"]),
        unit="of ideal",
        least=goal,
        note=f"{rows / median(runs['ours']):,.0f} records/s, CPU {cpu:.2f} of ideal",
        runs=runs,
    )
    yield Figure(
        workload="W3",
        name=f"{rows:,} records, a script that checks and syncs",
        value=ratio(runs["ideal"], runs["promised"]),
        unit="of ideal",
        note=f"ours is {ratio(runs['promised'], runs['ours']):.2f} of that",
    )
    for number, name in enumerate(_PASSES):
        pairs = zip(runs["ideal"], runs["ours"], strict=True)
        share = middle(_each(right, number) / _each(mine, number) for right, mine in pairs)
        yield Figure("W3", f"of that, {name}", share, "of ideal")


def _each(run: Run, number: int) -> float:
    return float(run.facts["each"][number])

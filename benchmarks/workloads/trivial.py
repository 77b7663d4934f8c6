"""W1: upper-case one field. Nearly all of the time is the overhead of the engine."""

from collections.abc import Iterator
from typing import Any

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.limit import against_limit
from benchmarks.measuring import ideal, median, ours, ratio


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures."""
    yield from against_ideal(bench, bench.size(500_000, 100_000), bench.workers, promised=0.9)
    yield from against_ideal(bench, 20_000, 1, promised=0.6)
    yield with_warm_workers(bench, 20_000)


def against_ideal(
    bench: Bench,
    rows: int,
    workers: int,
    goal: float | None = None,
    promised: float | None = None,
) -> Iterator[Figure]:
    """Yield process mode's share of the ideal, which runs on ``workers`` processes."""
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    contender = ours(source, _node(bench))
    name = f"ideal on {workers}"
    yield from against_limit(
        bench,
        "W1",
        name,
        source,
        rows,
        ["upper"],
        contender,
        workers=workers,
        goal=goal,
        promised_goal=promised,
    )


def with_warm_workers(bench: Bench, rows: int) -> Figure:
    """Return the share of a script with the promises, of a run with the workers of an earlier one.

    A process that runs several operators has such workers, from the second run on. The script runs
    in one process, which it does not have to start.
    """
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    runs = bench.in_turn(
        {
            "promised": ideal(source, "upper", workers=1, promised=True),
            "ours": ours(source, _node(bench), warm=True),
        }
    )
    cpu = ratio(runs["promised"], runs["ours"], lambda run: run.cpu_seconds)
    return Figure(
        workload="W1",
        name=f"{rows:,} records, warm workers",
        value=ratio(runs["promised"], runs["ours"]),
        unit="of a script that checks and syncs",
        least=0.8,
        note=f"{rows / median(runs['ours']):,.0f} records/s, CPU {cpu:.2f} of the script",
        runs=runs,
    )


def _node(bench: Bench) -> tuple[str, dict[str, Any]]:
    return ("upper", {"_concurrency_mode": "process", "_max_workers": bench.workers})

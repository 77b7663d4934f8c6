"""Check whether speed has halved: small sizes, ratios to the ideal measured at the same time.

>>> python benchmarks/regression.py

Bounds are far from the goals, because machines are noisy. A missed bound is measured once more.
Prints a table; exits with 1 if a bound is missed twice or a result is wrong.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])

from benchmarks import corpus
from benchmarks.bench import Bench, collected
from benchmarks.figures import FAILED, Figure, table
from benchmarks.processes import clean_up_when_terminated
from benchmarks.workloads import (
    calling,
    chained,
    cleaning,
    memory,
    resuming,
    starting,
    trivial,
)

Check = Callable[[Bench], Iterator[Figure]]


def upper(bench: Bench) -> Iterator[Figure]:
    """A trivial operator."""
    yield next(trivial.against_ideal(bench, 100_000, bench.workers, 0.3))


def clean(bench: Bench) -> Iterator[Figure]:
    """An operator that computes."""
    yield cleaning.against_ideal(bench, 3, 0.7)


def chain(bench: Bench) -> Iterator[Figure]:
    """Three nodes, the last of them deduplication."""
    yield next(chained.against_ideal(bench, 20_000, 0.25))


def calls(bench: Bench) -> Iterator[Figure]:
    """Threads and asyncio against list scheduling."""
    yield from calling.against_schedule(bench, 1_000, 64, 1.15, rounds=1, scale=0.5)


def resume(bench: Bench) -> Iterator[Figure]:
    """A killed run resumes quickly, from a small journal."""
    rows = 20_000
    source = bench.source(f"even{rows}", corpus.even_calls(rows, 0.01))
    node = ("marked_call", {"_concurrency_mode": "thread", "_max_workers": 100})
    figures = resuming.killed_and_resumed(bench, source, rows, node, "reply", 1.0)
    for figure, bound in zip(figures, (1.0, 80.0), strict=True):
        yield replace(figure, most=bound)


def growth(bench: Bench) -> Iterator[Figure]:
    """Memory does not grow with the input."""
    for mode in ("process", "thread"):
        yield memory.growth(bench, mode, 5_000, 100_000)


def start(bench: Bench) -> Iterator[Figure]:
    """A cold start takes less than seconds."""
    yield replace(starting.beyond_imports("process", 3), most=600.0)


CHECKS: Mapping[str, Check] = {
    check.__name__: check for check in (upper, clean, chain, calls, resume, growth, start)
}


def checked(checks: Mapping[str, Check], bench: Bench) -> list[Figure]:
    """Return the figures of ``checks``, those of a second try if the first missed a bound."""
    figures: list[Figure] = []
    for name, check in checks.items():
        found = collected(name, check, bench)
        if any(figure.met is False and figure.name != FAILED for figure in found):
            print(f"{name} again: it missed its bound")
            found = collected(name, check, bench)
        figures += found
    return figures


def main(checks: Mapping[str, Check] = CHECKS) -> int:
    """Check everything, print the table, return 1 after any fault."""
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        figures = checked(checks, Bench(Path(folder), rounds=3))
    print(f"\n{table(figures)}")
    return int(any(figure.met is False for figure in figures))


if __name__ == "__main__":
    clean_up_when_terminated()
    sys.exit(main())

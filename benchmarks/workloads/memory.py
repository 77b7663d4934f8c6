"""W5: memory of the whole process tree, few records against many."""

from collections.abc import Iterator
from typing import Any

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Run, ideal, ours

MEGABYTE = 1e6
_MODES = {"process": "upper", "thread": "upper", "async": "upper_async", "single": "upper"}


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures of every mode."""
    few, many = bench.size(100_000, 20_000), bench.size(5_000_000, 400_000)
    for mode in _MODES:
        yield growth(bench, mode, few, many)


def growth(bench: Bench, mode: str, few: int, many: int) -> Figure:
    """Return the ratio of the memory for ``many`` records to that for ``few``."""
    workers = bench.workers if mode == "process" else 8
    options: dict[str, Any] = {"_concurrency_mode": mode, "_max_workers": workers}
    if mode == "single":
        del options["_max_workers"]
    runs: list[Run] = []
    for rows in (few, many):
        source = bench.source(f"keys{rows}", corpus.keys(rows))
        mine = ours(source, (_MODES[mode], options), memory=True)
        right = ideal(source, "upper", workers=bench.workers)
        runs += bench.in_turn({"ideal": right, "ours": mine}, rounds=1)["ours"]
    before, after = (run.peak_bytes / MEGABYTE for run in runs)
    return Figure(
        workload="W5",
        name=f"{mode}, {few:,} to {many:,} records",
        value=after - before,
        unit="MB more",
        most=30,
        note=f"{before:.0f} to {after:.0f} MB, {many / runs[1].seconds:,.0f} records/s",
        runs={"few": runs[:1], "many": runs[1:]},
    )

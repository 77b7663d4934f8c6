"""Deduplication over many keys: memory against a Python set that holds all their digests."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks import corpus
from benchmarks.bench import Bench, Check
from benchmarks.comparing import same_bytes
from benchmarks.figures import Figure
from benchmarks.measuring import ideal, ours
from benchmarks.workloads.memory import MEGABYTE


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures of exact deduplication and of near-duplicates."""
    rows = bench.size(5_000_000, 400_000)
    source = bench.source(f"keys{rows}", corpus.keys(rows))
    yield against_set(bench, "Exact", source, rows, same_bytes)
    rows = bench.size(1_000_000, 20_000)
    source = bench.source(f"short{rows}", corpus.texts(rows, 100))
    # It has other duplicates than the set, so its result cannot be compared.
    yield against_set(bench, "NearDuplicate", source, rows, lambda _runs: None)


def against_set(bench: Bench, name: str, source: Path, rows: int, check: Check) -> Figure:
    """Return the share of a set's memory that an operator of the group ``dedup`` needs."""
    node = (f"dedup.{name}", {"input_key": "text", "_max_workers": bench.workers})
    contenders = {
        "set": ideal(source, "unique", workers=1, memory=True),
        "ours": ours(source, node, memory=True),
    }
    runs = bench.in_turn(contenders, check, rounds=1)
    given, mine = runs["set"][0], runs["ours"][0]
    return Figure(
        workload="dedup",
        name=f"{name}, {rows:,} records",
        value=mine.peak_bytes / given.peak_bytes,
        unit="x set's memory",
        most=1.0 if name == "Exact" else None,
        note=f"{mine.peak_bytes / MEGABYTE:.0f} MB, set {given.peak_bytes / MEGABYTE:.0f} MB, "
        f"{given.seconds / mine.seconds:.2f} of its speed, {rows / mine.seconds:,.0f} records/s",
        runs=runs,
    )

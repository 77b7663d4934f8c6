"""Deduplication over many keys: memory against a Python set that holds all their digests."""

from collections.abc import Iterator

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import ideal, ours
from benchmarks.workloads.memory import MEGABYTE
from dagster_dataops import data

_NEAR = ("Near", "NearDuplicates", "MinHash")  # names that the library may give it


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures of exact deduplication, and of near-duplicates where they are offered."""
    rows = bench.size(5_000_000, 400_000)
    source = bench.source(f"keys{rows}", corpus.keys(rows))
    runs = bench.in_turn(
        {
            "set": ideal(source, "unique", workers=1, memory=True),
            "ours": ours(source, ("dedup.Exact", {"input_key": "text"}), memory=True),
        },
        rounds=1,
    )
    given, mine = runs["set"][0], runs["ours"][0]
    yield Figure(
        workload="dedup",
        name=f"exact, {rows:,} records",
        value=mine.peak_bytes / given.peak_bytes,
        unit="x set's memory",
        most=1.0,
        note=f"{mine.peak_bytes / MEGABYTE:.0f} MB, set {given.peak_bytes / MEGABYTE:.0f} MB, "
        f"{given.seconds / mine.seconds:.2f} of its speed",
        runs=runs,
    )
    for name in _NEAR:
        if hasattr(data.dedup, name):
            yield near(bench, name, bench.size(200_000, 20_000))


def near(bench: Bench, name: str, rows: int) -> Figure:
    """Return what near-duplicates need in memory a record."""
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    peaks, seconds = [], 0.0
    for some in (rows // 4, rows):
        source = bench.source(f"texts{some}", corpus.texts(some))
        mine = ours(source, (f"dedup.{name}", {"input_key": "text"}), memory=True)
        run = bench.in_turn({"ours": mine}, rounds=1)["ours"][0]
        peaks.append(run.peak_bytes)
        seconds = run.seconds
    return Figure(
        workload="dedup",
        name=f"{name}, {rows:,} records",
        value=(peaks[1] - peaks[0]) / (rows - rows // 4),
        unit="bytes a record",
        note=f"{peaks[1] / MEGABYTE:.0f} MB, {rows / seconds:,.0f} records/s",
    )

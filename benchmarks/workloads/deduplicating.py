"""Deduplication: memory against a Python set of all digests; quality of near-duplicates."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson

from benchmarks import corpus
from benchmarks.bench import Bench, Check
from benchmarks.comparing import same_bytes
from benchmarks.figures import Figure
from benchmarks.measuring import Run, ideal, ours
from benchmarks.workloads.memory import MEGABYTE


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures of exact deduplication, of near-duplicates and of their quality."""
    rows = bench.size(5_000_000, 400_000)
    source = bench.source(f"keys{rows}", corpus.keys(rows))
    yield against_set(bench, "Exact", source, rows, same_bytes)
    rows = bench.size(1_000_000, 20_000)
    source = bench.source(f"short{rows}", corpus.texts(rows, 100))
    # It has other duplicates than the set, so its result cannot be compared.
    yield against_set(bench, "NearDuplicate", source, rows, lambda _runs: None)
    yield from of_pairs(bench, bench.size(10_000, 500))


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


def of_pairs(bench: Bench, pairs: int) -> Iterator[Figure]:
    """Yield the quality of near-duplicates over pairs of known similarity, and singles."""
    source = bench.source(f"pairs{pairs}", corpus.similar_pairs(pairs))
    for name, goal, options in (
        ("recall from 0.8", 0.98, {}),
        ("F1 at 0.8, verified", 0.99, {"verify": True}),
    ):
        node = ("dedup.NearDuplicate", {**options, "_max_workers": bench.workers})
        kept: dict[int, tuple[float, int]] = {}

        def read(runs: Mapping[str, Run], kept: dict[int, tuple[float, int]] = kept) -> None:
            kept.update(pairs_of(runs["ours"].outputs[-1]))  # the runs are deleted

        run = bench.in_turn({"ours": ours(source, node)}, read, rounds=1)["ours"][0]
        given = dict(pairs_of(source))
        found = [given[pair][0] >= 0.8 for pair in given if kept.get(pair, (0, 0))[1] < 2]
        similar = sum(jaccard >= 0.8 for jaccard, _ in given.values())
        recall, precision = sum(found) / similar, sum(found) / len(found)
        f1 = 2 * recall * precision / (recall + precision)
        yield Figure(
            workload="dedup",
            name=f"{name}, {4 * pairs:,} documents",
            value=f1 if options else recall,
            unit="F1" if options else "recall",
            least=goal,
            note=f"precision {precision:.3f}, {4 * pairs / run.cpu_seconds:,.0f} records/CPU s",
            runs={"ours": [run]},
        )


def pairs_of(path: Path) -> Iterator[tuple[int, tuple[float, int]]]:
    """Yield each pair with its Jaccard index and the number of its documents in a file."""
    counts: Counter[tuple[int, float]] = Counter()
    with path.open("rb") as lines:
        for record in map(orjson.loads, lines):
            if "pair" in record:
                counts[record["pair"], record["jaccard"]] += 1
    for (pair, jaccard), count in counts.items():
        yield pair, (jaccard, count)

"""Streams read by worker processes against one process, and against torch's StatefulDataLoader."""

import math
from collections.abc import Iterator
from pathlib import Path

from benchmarks import comparing, corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, ContenderError, ratio
from benchmarks.workloads.streaming import flowing, per_item

_SLOW = "slow"
_EMPTY = "empty"


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures."""
    yield against_one(bench, _SLOW, bench.size(20_000, 3_000), least=1.9)
    yield against_one(bench, _EMPTY, bench.size(500_000, 100_000), least=0.4)
    for task, rows in ((_SLOW, bench.size(20_000, 3_000)), (_EMPTY, bench.size(500_000, 100_000))):
        yield against_loader(bench, task, rows)


def against_one(bench: Bench, task: str, rows: int, least: float) -> Figure:
    """Return the pace of two workers over that of one process."""
    source = bench.source(f"keys{rows}", corpus.keys(rows))
    ways = {"one": "one", "two": "two"}
    contenders = {name: flowing(source, way, task) for name, way in ways.items()}
    runs = bench.in_turn(contenders, comparing.same_bytes)
    paces = [1 / min(map(per_item, runs[name])) for name in ways]
    return Figure(
        workload="workers",
        name=f"{task} map, two workers over one process, {rows:,} records",
        value=ratio(runs["one"], runs["two"], per_item),
        unit="x",
        least=least,
        note=f"{paces[1]:,.0f} and {paces[0]:,.0f} records/s",
        runs=runs,
    )


def against_loader(bench: Bench, task: str, rows: int) -> Figure:
    """Return the pace over StatefulDataLoader's; ``nan`` if it is not installed or failed."""
    what = f"{task} map, two workers, pace over StatefulDataLoader"
    python = (bench.peers or Path()) / "torchdata" / "bin" / "python"
    if bench.peers is None or not python.exists():
        return Figure("workers", what, math.nan, "x", note="not installed")
    source = bench.source(f"keys{rows}", corpus.keys(rows))
    given = {"source": str(source), "task": task, "workers": 2}
    contenders = {
        "two": flowing(source, "two", task),
        "loader": Contender("benchmarks.peers.torchdata_loader", given, str(python)),
    }
    try:
        runs = bench.in_turn(contenders, comparing.same_bytes)
    except ContenderError as error:
        reason = " ".join(str(error).split())[-120:]
        return Figure("workers", what, math.nan, "x", note=f"failed: {reason}")
    paces = [1 / min(map(per_item, runs[name])) for name in contenders]
    note = f"{paces[0]:,.0f} and {paces[1]:,.0f} records/s"
    value = ratio(runs["loader"], runs["two"], per_item)
    return Figure("workers", what, value, "x", least=1.0, note=note, runs=runs)

"""Samples of tar shards against a loop of one read a sample, and against other libraries."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import comparing
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, ContenderError, Run, ratio
from benchmarks.sampling import made

PEERS = ("webdataset", "torchdata_nodes", "grain", "mosaic", "energon")
_GOALS: list[tuple[str, str, float | None]] = [  # task, that of the loop, at most
    ("ordered", "ordered", 2.0),
    ("shuffled", "ordered", 2.5),
    ("shuffled", "shuffled", None),
    ("aux", "ordered", 3.0),
    ("headers", "headers", 2.0),
]


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures; a peer without an environment is reported as missing."""
    count = bench.size(20_000, 4_000)
    with _cache(bench.folder / "cache"):
        source = made(bench.folder / f"samples{count}", count)
        for task, against, most in _GOALS:
            yield against_loop(bench, source, task, against, most)
        for peer in PEERS:
            yield against_peer(bench, source, peer)


@contextmanager
def _cache(folder: Path) -> Iterator[None]:
    """Keep indices in a folder of the benchmark."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    try:
        yield
    finally:
        os.environ.pop("XDG_CACHE_HOME")
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before


def contender(source: Path, way: str, task: str) -> Contender:
    """Return this package, or a loop, as a contender."""
    return Contender("benchmarks.sampling", {"source": str(source), "way": way, "task": task})


def cpu_per_item(run: Run) -> float:
    """Return the CPU seconds for an item, without the start and the end of the process."""
    return float(run.facts["cpu"] / run.facts["items"])


def against_loop(bench: Bench, source: Path, task: str, against: str, most: float | None) -> Figure:
    """Return the ratio of the CPU times per sample of this package and of a loop."""
    contenders = {
        "plain": contender(source, "plain", against),
        "crude": contender(source, "crude", task),
    }
    runs = bench.in_turn(contenders, comparing.same_bytes)
    return Figure(
        workload="crude",
        name=f"{task}, CPU over a loop, {against}",
        value=ratio(runs["crude"], runs["plain"], cpu_per_item),
        unit="x loop",
        most=most,
        note=f"{min(map(cpu_per_item, runs['crude'])) * 1e6:.1f} us an item",
        runs=runs,
    )


def against_peer(bench: Bench, source: Path, peer: str) -> Figure:
    """Return a peer's CPU time over this package's; ``nan`` if it is not installed or failed."""
    what = f"ordered, CPU of {peer}"
    python = (bench.peers or Path()) / peer.partition("_")[0] / "bin" / "python"
    if bench.peers is None or not python.exists():
        return Figure("crude", what, math.nan, "x", note="not installed")
    given = {"source": str(source), "task": peer}
    contenders = {
        "crude": contender(source, "crude", "ordered"),
        peer: Contender("benchmarks.peers.samples", given, str(python)),
    }
    try:
        runs = bench.in_turn(contenders, comparing.same_bytes)
    except ContenderError as error:
        reason = " ".join(str(error).split())[-120:]
        return Figure("crude", what, math.nan, "x", note=f"failed: {reason}")
    value = ratio(runs[peer], runs["crude"], cpu_per_item)
    return Figure("crude", what, value, "x", least=1.0, runs=runs)

"""Streams read by worker processes against one process, and against other loaders."""

import math
from collections.abc import Iterator
from pathlib import Path

from benchmarks import comparing, corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, ContenderError, median, ratio
from benchmarks.workloads.streaming import flowing, per_item

_SLOW = "slow"
_BUSY = "busy"
_EMPTY = "empty"
_LEAST = 1.0
_LIMIT_SECONDS = 60.0  # of one run of a peer
_PEERS = {  # by what is read: the environment and the module of the peer
    "StatefulDataLoader": ("torchdata", "torchdata_loader"),
    "torchdata.nodes": ("torchdata", "torchdata_workers"),
    "grain": ("grain", "grain_loader"),
    "mosaicml-streaming": ("mosaic", "mosaic_loader"),
}


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures."""
    slow, empty = bench.size(20_000, 3_000), bench.size(500_000, 100_000)
    yield against_one(bench, _SLOW, slow, least=1.9)
    yield against_one(bench, _BUSY, slow, least=1.9)
    yield against_one(bench, _EMPTY, empty, least=0.4)
    yield restored(bench)
    for peer in _PEERS:
        for task, rows in ((_SLOW, slow), (_EMPTY, empty // 2)):
            yield against_peer(bench, peer, task, rows)


def against_one(bench: Bench, task: str, rows: int, least: float) -> Figure:
    """Return the pace of two workers over that of one process."""
    source = bench.source(f"keys{rows}", corpus.keys(rows))
    ways = {"one": "one", "two": "two"}
    contenders = {name: flowing(source, way, task) for name, way in ways.items()}
    runs = bench.in_turn(contenders, comparing.same_bytes)
    paces = [1 / min(map(per_item, runs[name])) for name in ways]
    cpu = ratio(runs["two"], runs["one"], lambda run: run.cpu_seconds)
    return Figure(
        workload="workers",
        name=f"{task} map, two workers over one process, {rows:,} records",
        value=ratio(runs["one"], runs["two"], per_item),
        unit="x",
        least=least,
        note=f"{paces[1]:,.0f} and {paces[0]:,.0f} records/s, CPU {cpu:.2f} x",
        runs=runs,
    )


def restored(bench: Bench) -> Figure:
    """Return the seconds to go to item 100,000,000 and read one more, by two workers."""
    contender = Contender("benchmarks.restoring", {"position": 100_000_000, "workers": 2})
    runs = bench.in_turn({"restored": contender}, check=lambda _: None)
    seconds = median(runs["restored"])
    what = "item 100,000,000 after loading its state, two workers"
    return Figure("workers", what, seconds, "s", most=0.5, runs=runs)


def against_peer(bench: Bench, peer: str, task: str, rows: int) -> Figure:
    """Return the pace over that of a peer; ``nan`` if it is not installed or failed."""
    environment, module = _PEERS[peer]
    what = f"{task} map, two workers, pace over {peer}"
    python = (bench.peers or Path()) / environment / "bin" / "python"
    if bench.peers is None or not python.exists():
        return Figure("workers", what, math.nan, "x", note="not installed")
    source = bench.source(f"keys{rows}", corpus.keys(rows))
    given = {"source": str(source), "task": task, "workers": 2}
    contenders = {
        "two": flowing(source, "two", task),
        "peer": Contender(f"benchmarks.peers.{module}", given, str(python), limit=_LIMIT_SECONDS),
    }
    try:
        runs = bench.in_turn(contenders, comparing.same_bytes, rounds=min(bench.rounds, 2))
    except ContenderError as error:
        reason = " ".join(str(error).split())[-120:]
        return Figure("workers", what, math.nan, "x", note=f"failed: {reason}")
    paces = [1 / min(map(per_item, runs[name])) for name in contenders]
    cpu = ratio(runs["peer"], runs["two"], lambda run: run.cpu_seconds)
    note = f"{paces[0]:,.0f} and {paces[1]:,.0f} records/s, CPU {cpu:.2f} x"
    value = ratio(runs["peer"], runs["two"], per_item)
    least = _LEAST if peer == "StatefulDataLoader" else None
    return Figure("workers", what, value, "x", least=least, note=note, runs=runs)

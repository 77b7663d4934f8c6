"""Streams against loops written by hand and other libraries, and their memory."""

import math
import timeit
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import comparing, corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, ContenderError, Run, ratio
from dagster_dataops import Selector

MEGABYTE = 1e6
PEERS = {"torchdata_nodes": ["lines", "mix"], "fairseq2_pipelines": ["lines", "mix", "all"]}
_CALLS = 3_000
_TURNS = 150


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures."""
    rows = bench.size(1_000_000, 200_000)
    yield against_loop(bench, "lines", rows, comparing.same_bytes)
    yield against_loop(bench, "mix", rows, anything)
    yield against_loop(bench, "all", rows, comparing.same_bytes)
    for peer, tasks in PEERS.items():
        for task in tasks:
            yield against_peer(bench, peer, task, bench.size(200_000, 50_000))
    few, many = bench.size(100_000, 20_000), bench.size(5_000_000, 400_000)
    yield growth(bench, "mix", few, many, most=30)
    index = 8 * many / MEGABYTE  # 8 bytes per record, to find each of them
    yield growth(bench, "all", few, many, most=30 + index)
    yield from selecting(_CALLS, _TURNS)


def anything(_: Mapping[str, Run]) -> None:
    """Check no result: the random draws differ."""


def flowing(source: Path, way: str, task: str, *, memory: bool = False) -> Contender:
    """Return a stream, or a loop, as a contender."""
    return Contender(
        "benchmarks.flowing", {"source": str(source), "way": way, "task": task}, memory=memory
    )


def per_item(run: Run) -> float:
    """Return the seconds for an item."""
    return run.seconds / run.facts["items"]


def against_loop(
    bench: Bench, task: str, rows: int, check: Callable[[Mapping[str, Run]], None]
) -> Figure:
    """Return the ratio of the times per item of a stream and of a loop."""
    source = bench.source(f"keys{rows}", corpus.keys(rows))
    contenders = {way: flowing(source, way, task) for way in ("plain", "stream")}
    runs = bench.in_turn(contenders, check)
    nanoseconds = min(map(per_item, runs["stream"])) * 1e9
    return Figure(
        workload="streams",
        name=f"{task}, {rows:,} records",
        value=ratio(runs["stream"], runs["plain"], per_item),
        unit="x loop",
        most=2.0,
        note=f"{nanoseconds:.0f} ns a record",
        runs=runs,
    )


def against_peer(bench: Bench, peer: str, task: str, rows: int) -> Figure:
    """Return the engine's pace over a peer's; ``nan`` if it is not installed or failed."""
    what = f"{task}, pace over {peer}"
    python = (bench.peers or Path()) / peer.partition("_")[0] / "bin" / "python"
    if bench.peers is None or not python.exists():
        return Figure("streams", what, math.nan, "x", note="not installed")
    source = bench.source(f"keys{rows}", corpus.keys(rows))
    contenders = {
        "stream": flowing(source, "stream", task),
        peer: Contender(
            f"benchmarks.peers.{peer}", {"source": str(source), "task": task}, str(python)
        ),
    }
    try:
        runs = bench.in_turn(contenders, comparing.same_bytes if task != "mix" else anything)
    except ContenderError as error:
        reason = " ".join(str(error).split())[-120:]
        return Figure("streams", what, math.nan, "x", note=f"failed: {reason}")
    paces = [1 / min(map(per_item, runs[name])) for name in ("stream", peer)]
    note = f"{paces[0]:,.0f} and {paces[1]:,.0f} records/s"
    return Figure("streams", what, ratio(runs[peer], runs["stream"], per_item), "x", note=note)


def growth(bench: Bench, task: str, few: int, many: int, *, most: float) -> Figure:
    """Return the ratio of the memory of a stream of ``many`` records to that of one of ``few``."""
    runs: list[Run] = []
    for rows in (few, many):
        source = bench.source(f"keys{rows}", corpus.keys(rows))
        contender = {"stream": flowing(source, "stream", task, memory=True)}
        runs += bench.in_turn(contender, anything, rounds=1)["stream"]
    before, after = (run.peak_bytes / MEGABYTE for run in runs)
    return Figure(
        workload="streams",
        name=f"{task}, memory, {few:,} to {many:,} records",
        value=after - before,
        unit="MB more",
        most=most,
        note=f"{before:.0f} to {after:.0f} MB",
        runs={"few": runs[:1], "many": runs[1:]},
    )


def selecting(calls: int, turns: int) -> Iterator[Figure]:
    """Yield the ratio of the times of selectors and of indexing written by hand."""
    record = {"foo": [{"x": 1, "y": 2}, {"x": 3, "y": 4, "z": 5}], "bar": 6}
    texts = {"id": 1, "texts": [{"body": str(number), "n": number} for number in range(5)]}
    changes: list[tuple[str, Any, Callable[[Any], Any]]] = [
        ("foo[1].y", record, _hand_nested),
        ("foo[1].y,bar", record, _hand_two),
        ("texts[*].body", texts, _hand_every),
        ("[3]", (1, 2, 3, 4), _hand_tuple),
    ]
    get = Selector("foo[1].y").get
    yield _times("get foo[1].y", get, lambda item: item["foo"][1]["y"], record, calls, turns)
    for text, item, by_hand in changes:
        mapped = Selector(text).mapper(_same)
        yield _times(f"map {text}", mapped, by_hand, item, calls, turns)


def _times(
    name: str,
    ours: Callable[[Any], Any],
    by_hand: Callable[[Any], Any],
    item: Any,
    calls: int,
    turns: int,
) -> Figure:
    best = [float("inf")] * 2
    for _ in range(turns):
        for at, function in enumerate((by_hand, ours)):
            timer = timeit.Timer("function(item)", globals={"function": function, "item": item})
            best[at] = min(best[at], timer.timeit(calls))
    note = f"{best[1] / calls * 1e9:.0f} ns, by hand {best[0] / calls * 1e9:.0f} ns"
    return Figure("streams", name, best[1] / best[0], "x by hand", most=1.5, note=note)


def _same(value: Any) -> Any:
    return value


def _hand_nested(item: Any) -> Any:
    changed = {**item}
    inner = changed["foo"] = list(item["foo"])
    element = inner[1] = {**inner[1]}
    element["y"] = _same(element["y"])
    return changed


def _hand_two(item: Any) -> Any:
    changed = _hand_nested(item)
    changed["bar"] = _same(changed["bar"])
    return changed


def _hand_every(item: Any) -> Any:
    return {**item, "texts": [{**one, "body": _same(one["body"])} for one in item["texts"]]}


def _hand_tuple(item: Any) -> Any:
    return (*item[:3], _same(item[3]))

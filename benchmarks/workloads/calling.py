"""W4: simulated calls with heavy-tailed latencies, many in flight.

Measured against list scheduling of the same latencies without any overhead: the best time of a pool
that does not know the latencies beforehand.
"""

from collections.abc import Iterator
from pathlib import Path

import orjson

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.latencies import list_schedule
from benchmarks.measuring import Contender, ideal, median, ours


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures."""
    yield from against_schedule(bench, bench.size(2_000, 500), 64, 1.01, rounds=2)
    rows, in_flight = bench.size(100_000, 20_000), bench.size(1_000, 500)
    yield from against_schedule(bench, rows, in_flight, 1.02, rounds=1, cpu_goal=45)


def contenders(source: Path, in_flight: int) -> dict[str, Contender]:
    """Return thread and async mode."""
    return {
        mode: ours(source, (name, {"_concurrency_mode": mode, "_max_workers": in_flight}))
        for mode, name in (("thread", "call"), ("async", "call_async"))
    }


def against_schedule(
    bench: Bench,
    rows: int,
    in_flight: int,
    goal: float,
    *,
    rounds: int,
    scale: float = 1.0,
    cpu_goal: float | None = None,
) -> Iterator[Figure]:
    """Yield each mode's time over that of list scheduling, and CPU per record if it has a goal."""
    source = bench.source(f"calls{rows}x{scale}", corpus.calls(rows, scale))
    with source.open("rb") as file:
        seconds = (orjson.loads(line)["seconds"] for line in file)
        best = list_schedule(seconds, in_flight)
    reply = {"ideal": ideal(source, "reply", workers=1)}
    runs = bench.in_turn(reply | contenders(source, in_flight), rounds=rounds)
    for mode in ("thread", "async"):
        what = f"{rows:,} calls, {in_flight:,} in flight, {mode}"
        cpu = median(runs[mode], lambda run: run.cpu_seconds) / rows * 1e6
        yield Figure(
            workload="W4",
            name=what,
            value=median(runs[mode]) / best,
            unit="x schedule",
            most=goal,
            note=f"schedule {best:.2f} s, {cpu:.0f} us CPU a record",
            runs={mode: runs[mode]},
        )
        if cpu_goal is not None:
            yield Figure("W4", f"CPU a record, {mode}", cpu, "us", most=cpu_goal)

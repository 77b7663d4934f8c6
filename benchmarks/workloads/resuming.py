"""W6: a run killed near its end: the time until the next attempt calls the operator."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.comparing import same_bytes
from benchmarks.figures import Figure
from benchmarks.measuring import ContenderError, Run, ideal, ours, started
from benchmarks.measuring import measure as run_once
from benchmarks.operators import CALLS

if TYPE_CHECKING:
    import subprocess

_KILL_AT = 0.97
_LIMIT_SECONDS = 600.0


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures of thread mode, one record per span, and of process mode."""
    rows = bench.size(1_000_000, 50_000)
    source = bench.source(f"even{rows}", corpus.even_calls(rows, 0.06))
    threads = {"_concurrency_mode": "thread", "_max_workers": bench.size(1_000, 500)}
    yield from killed_and_resumed(bench, source, rows, ("marked_call", threads), "reply", 1.0)
    rows = bench.size(500_000, 100_000)
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    processes = {"_concurrency_mode": "process", "_max_workers": bench.workers}
    yield from killed_and_resumed(bench, source, rows, ("marked_upper", processes), "upper", 0.2)


def killed_and_resumed(
    bench: Bench, source: Path, rows: int, node: tuple[str, dict[str, Any]], same: str, goal: float
) -> Iterator[Figure]:
    """Kill a run, resume it, compare its result with the ideal's; yield the figures."""
    out = bench.folder / "killed"
    out.mkdir()
    calls = out / "calls"
    os.environ[CALLS] = str(calls)
    contender = ours(source, node, resume=True)
    try:
        with started(contender, out) as process:
            _wait_for_calls(process, calls, int(rows * _KILL_AT))
        journal = sum(path.stat().st_size for path in out.rglob("journal*"))
        before = set(out.glob("calls.*"))
        resumed = run_once(contender, out)
        first, cpu = min(_clocks(path) for path in set(out.glob("calls.*")) - before)
        made = calls.stat().st_size
        right = run_once(ideal(source, same, workers=1), bench.folder / "right")
        same_bytes({"ideal": right, "resumed": resumed})
    finally:
        del os.environ[CALLS]
        shutil.rmtree(out)
        shutil.rmtree(bench.folder / "right", ignore_errors=True)
    settled = resumed.facts["resumed"]
    mode = node[1]["_concurrency_mode"]
    yield Figure(
        workload="W6",
        name=f"first new call, {settled:,} settled, {mode}",
        value=first - resumed.facts["began"],
        unit="s",
        most=goal,
        note=f"CPU {_own(cpu, resumed):.2f} s, {made - rows:,} records done again",
        runs={"resumed": [resumed]},
    )
    yield Figure("W6", f"journal, {mode}", journal / settled, "bytes a record", most=40)


def _clocks(path: Path) -> tuple[float, float]:
    """Return the clock and the CPU time of a process at its first call."""
    clock, cpu = path.read_text(encoding="ascii").split()
    return float(clock), float(cpu)


def _own(cpu: float, resumed: Run) -> float:
    """Return CPU seconds without those of the imports, which a forked worker does not have."""
    return max(cpu - resumed.facts["cpu_before"], 0.0)


def _wait_for_calls(process: "subprocess.Popen[bytes]", calls: Path, wanted: int) -> None:
    until = time.monotonic() + _LIMIT_SECONDS
    while not calls.exists() or calls.stat().st_size < wanted:
        if process.poll() is not None or time.monotonic() > until:
            msg = f"the run that was to be killed did not come to {wanted:,} calls"
            raise ContenderError(msg)
        time.sleep(0.002)

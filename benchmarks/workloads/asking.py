"""Calls of a model by a local server without faults: CPU time of the caller, 200 calls in flight.

The server is a process of its own, whose time does not count.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.chatting import LATENCY_SECONDS
from benchmarks.comparing import verdict
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, ContenderError, Run, median, ratio
from tests.models.running_server import running_server

_IN_FLIGHT = 200
_LIMIT_SECONDS = 300.0


class Rival(NamedTuple):
    """Another library that calls models: its environment, module and transport."""

    environment: str
    module: str
    transport: str = ""


RIVALS = [
    Rival("openai", "openai_calls", "aiohttp"),
    Rival("openai", "openai_calls", "httpx"),
    Rival("curator", "curator_calls"),
    Rival("distilabel", "distilabel_calls"),
]


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures; a peer without an environment is reported as missing."""
    yield from against_script(bench, bench.size(20_000, 2_000))
    for rival in RIVALS:
        yield against(bench, rival, bench.size(1_000, 500))


def against_script(bench: Bench, rows: int, most: float | None = 2.0) -> Iterator[Figure]:
    """Yield the CPU time, and the time over the ideal, against a script with aiohttp alone."""
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    with running_server("--latency", str(LATENCY_SECONDS)) as server:
        given = _given(source, server.address)
        runs = bench.in_turn(
            {
                "script": Contender("benchmarks.bare_calls", given),
                "ours": Contender("benchmarks.our_calls", given),
            }
        )
    each = {name: median(found, _cpu) / rows * 1e6 for name, found in runs.items()}
    yield Figure(
        workload="calls",
        name=f"{rows:,} calls, CPU over a script with aiohttp",
        value=ratio(runs["ours"], runs["script"], _cpu),
        unit="x",
        most=most,
        note=f"{each['ours']:.0f} and {each['script']:.0f} us a call",
        runs=runs,
    )
    yield Figure("calls", "time over the script", ratio(runs["ours"], runs["script"]), "x")


def against(bench: Bench, rival: Rival, rows: int) -> Figure:
    """Return the CPU time of a rival over ours; ``nan`` with the reason if it has no result."""
    what = f"CPU of {rival.environment} {rival.transport}".rstrip() + " over ours"
    python = (bench.peers or Path()) / rival.environment / "bin" / "python"
    if bench.peers is None or not python.exists():
        return Figure("calls", what, math.nan, "x", note="not installed")
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    with running_server("--latency", str(LATENCY_SECONDS)) as server:
        given = _given(source, server.address, transport=rival.transport)
        module = f"benchmarks.peers.{rival.module}"
        found: list[str] = []
        try:
            runs = bench.in_turn(
                {
                    "ours": Contender("benchmarks.our_calls", given),
                    "rival": Contender(module, given, str(python), limit=_LIMIT_SECONDS),
                },
                lambda runs: found.append(verdict(runs["ours"].outputs[0], runs["rival"].outputs)),
            )
        except ContenderError as error:
            reason = " ".join(str(error).split())[-120:]
            return Figure("calls", what, math.nan, "x", note=f"failed: {reason}")
    note = f"{median(runs['rival'], _cpu) / rows * 1e6:,.0f} us a call, {found[0]}"
    return Figure(
        "calls", what, ratio(runs["rival"], runs["ours"], _cpu), "x", note=note, runs=runs
    )


def _given(source: Path, address: str, **more: Any) -> dict[str, Any]:
    return {"source": str(source), "address": address, "in_flight": _IN_FLIGHT, **more}


def _cpu(run: Run) -> float:
    return run.cpu_seconds

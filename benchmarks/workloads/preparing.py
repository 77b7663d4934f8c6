"""The ready pretraining pipeline of 24 steps, as nodes and as chains, beside LazyLLM's."""

import math
from collections.abc import Iterator, Mapping

from benchmarks import comparing, corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, ContenderError, Run, median, ratio

_ROWS = 1_000
_PEER = "lazyllm"


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the speed of the pipeline in both forms, whose results are compared, and of LazyLLM."""
    source = str(bench.source(f"prose{_ROWS}", corpus.prose(_ROWS)))
    contenders = {
        name: Contender("benchmarks.pretraining", {"source": source, "chained": chained})
        for name, chained in (("nodes", False), ("chains", True))
    }
    peer, missing = _peer(bench, source)
    try:
        runs = bench.in_turn({**contenders, **peer}, _check)
    except ContenderError as error:
        if not peer:
            raise
        missing = f"failed: {' '.join(str(error).split())[-120:]}"
        runs = bench.in_turn(contenders, _check)
    for name, found in runs.items():
        yield _speed(name, found)
    yield Figure(
        workload="pretraining",
        name="CPU of chains over nodes",
        value=ratio(runs["chains"], runs["nodes"], _cpu),
        unit="x",
        most=1.0,
        runs=runs,
    )
    yield from _against_peer(runs, missing)


def _peer(bench: Bench, source: str) -> tuple[dict[str, Contender], str]:
    """Return LazyLLM as a contender, or none and the reason."""
    if bench.peers is None:
        return {}, "not installed"
    python = bench.peers / _PEER / "bin" / "python"
    if not python.exists():
        return {}, f"not installed: {python} is missing"
    module = f"benchmarks.peers.{_PEER}_pretraining"
    return {_PEER: Contender(module, {"source": source}, str(python))}, ""


def _check(runs: Mapping[str, Run]) -> None:
    comparing.same_bytes({name: run for name, run in runs.items() if name != _PEER})


def _cpu(run: Run) -> float:
    return run.cpu_seconds


def _speed(name: str, found: list[Run]) -> Figure:
    return Figure(
        workload="pretraining",
        name=f"24 steps as {name}, {_ROWS:,} documents",
        value=_ROWS / median(found),
        unit="records/s",
        note=f"{median(found):.1f} s, {median(found, _cpu):.1f} CPU s, "
        f"{found[0].facts['kept']:,} pieces",
        runs={name: found},
    )


def _against_peer(runs: Mapping[str, list[Run]], missing: str) -> Iterator[Figure]:
    """Yield LazyLLM's CPU and wall seconds over those of the nodes and of the chains."""
    for name in ("nodes", "chains"):
        what = f"CPU of {_PEER} over {name}"
        if missing:
            yield Figure("pretraining", what, math.nan, "x", note=missing)
            continue
        seconds = ratio(runs[_PEER], runs[name])
        note = f"{seconds:.1f} x the seconds"
        value = ratio(runs[_PEER], runs[name], _cpu)
        yield Figure("pretraining", what, value, "x", note=note, runs=runs)

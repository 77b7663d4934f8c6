"""The ready pretraining pipeline of 24 steps, as nodes and as chains, and LazyLLM's."""

import math
from collections.abc import Iterator
from pathlib import Path

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, Run, median, ratio

_ROWS = 1_000


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the speed of the pipeline in both forms, whose results are compared."""
    source = bench.source(f"prose{_ROWS}", corpus.prose(_ROWS))
    contenders = {
        name: Contender("benchmarks.pretraining", {"source": str(source), "chained": chained})
        for name, chained in (("nodes", False), ("chains", True))
    }
    python = (bench.peers or Path()) / "lazyllm" / "bin" / "python"
    if bench.peers is not None and python.exists():
        peer = "benchmarks.peers.lazyllm_pretraining"
        contenders["LazyLLM"] = Contender(peer, {"source": str(source)}, str(python), limit=600)
    runs = bench.in_turn(contenders)
    for name, found in runs.items():
        cpu = median(found, lambda run: run.cpu_seconds)
        yield Figure(
            workload="pretraining",
            name=f"24 steps as {name}, {_ROWS:,} documents",
            value=_ROWS / median(found),
            unit="records/s",
            note=f"{median(found):.1f} s, {_ROWS / cpu:,.0f} records/CPU s, "
            f"{found[0].facts['kept']:,} pieces",
            runs={name: found},
        )
    yield Figure(
        workload="pretraining",
        name="CPU of chains over nodes",
        value=ratio(runs["chains"], runs["nodes"], lambda run: run.cpu_seconds),
        unit="x",
        most=1.0,
        runs=runs,
    )
    yield _against_lazyllm(runs)


def _against_lazyllm(runs: dict[str, list[Run]]) -> Figure:
    """Return the ratio of LazyLLM's seconds to those of the nodes."""
    what = "seconds of LazyLLM over nodes"
    if "LazyLLM" not in runs:
        return Figure("pretraining", what, math.nan, "x", note="not installed")
    return Figure("pretraining", what, ratio(runs["LazyLLM"], runs["nodes"]), "x", runs=runs)

"""The cost of saving: the same run with and without ``_save_data``, its result exported."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.comparing import same_bytes
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, Run, ours, ratio


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the cost on W2 and on W4."""
    megabytes = bench.size(60, 10)
    source = bench.source(f"documents{megabytes}", corpus.documents(megabytes))
    yield cost(bench, "W2", source, "clean", {"_max_workers": bench.workers})
    rows = bench.size(20_000, 2_000)
    source = bench.source(f"calls{rows}x0.5", corpus.calls(rows, 0.5))
    yield cost(bench, "W4", source, "call", {"_concurrency_mode": "thread", "_max_workers": 256})


def cost(
    bench: Bench, workload: str, source: Path, name: str, settings: Mapping[str, Any]
) -> Figure:
    """Return the ratio by which saving lengthens a run."""
    exports = bench.folder / "exports"
    exports.mkdir(exist_ok=True)

    def contender(*, save: bool) -> Contender:
        node = (name, {**settings, "_save_data": save})
        return ours(source, node, export=str(exports / f"saved_{save}.jsonl"))

    contenders = {"unsaved": contender(save=False), "saved": contender(save=True)}
    runs = bench.in_turn(contenders, check=same_bytes)
    return Figure(
        workload="checkpoint",
        name=f"saved over unsaved, {workload}",
        value=(ratio(runs["saved"], runs["unsaved"]) - 1) * 100,
        unit="% longer",
        most=3,
        note=f"CPU {(ratio(runs['saved'], runs['unsaved'], _cpu) - 1) * 100:+.1f} %",
        runs=runs,
    )


def _cpu(run: Run) -> float:
    return run.cpu_seconds

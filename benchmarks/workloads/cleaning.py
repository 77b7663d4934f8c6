"""W2: ten regular expressions and word statistics over documents of several KB."""

from collections.abc import Iterator, Mapping

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, ideal, median, ours, ratio


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield process mode's share of the ideal, and the gain of its workers over a single one."""
    megabytes = bench.size(60, 10)
    source = bench.source(f"documents{megabytes}", corpus.documents(megabytes))
    single = {"single": ours(source, ("clean", {"_concurrency_mode": "single"}))}
    against = against_ideal(bench, megabytes, 0.95, single)
    yield against
    runs = against.runs
    free = bench.workers * ratio(runs["single"], runs["ours"], lambda run: run.cpu_seconds)
    yield Figure(
        workload="W2",
        name="process over single mode",
        value=ratio(runs["single"], runs["ours"]),
        unit="x",
        least=1.8,
        note=f"{free:.2f} on free cores, to judge by CPU",
    )


def against_ideal(
    bench: Bench, megabytes: int, goal: float, others: Mapping[str, Contender] | None = None
) -> Figure:
    """Return process mode's share of the ideal; ``others`` run in turn with both."""
    source = bench.source(f"documents{megabytes}", corpus.documents(megabytes))
    node = ("clean", {"_concurrency_mode": "process", "_max_workers": bench.workers})
    contenders = {
        "ideal": ideal(source, "clean", workers=bench.workers),
        "ours": ours(source, node),
    }
    runs = bench.in_turn({**contenders, **(others or {})})
    cpu = ratio(runs["ideal"], runs["ours"], lambda run: run.cpu_seconds)
    return Figure(
        workload="W2",
        name=f"{megabytes} MB, process mode",
        value=ratio(runs["ideal"], runs["ours"]),
        unit="of ideal",
        least=goal,
        note=f"{megabytes / median(runs['ours']):.1f} MB/s, CPU {cpu:.2f} of ideal",
        runs=runs,
    )

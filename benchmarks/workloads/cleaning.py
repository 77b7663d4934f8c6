"""W2: ten regular expressions and word statistics over documents of several KB."""

from collections.abc import Iterator

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import ideal, median, ours, ratio


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures."""
    megabytes = bench.size(60, 10)
    source = bench.source(f"documents{megabytes}", corpus.documents(megabytes))
    settings = {"_concurrency_mode": "process", "_max_workers": bench.workers}
    runs = bench.in_turn(
        {
            "ideal": ideal(source, "clean", workers=bench.workers),
            "ours": ours(source, ("clean", settings)),
            "single": ours(source, ("clean", {"_concurrency_mode": "single"})),
        }
    )
    cpu = ratio(runs["ideal"], runs["ours"], lambda run: run.cpu_seconds)
    yield Figure(
        workload="W2",
        name=f"{megabytes} MB, process mode",
        value=ratio(runs["ideal"], runs["ours"]),
        unit="of ideal",
        least=0.95,
        note=f"{megabytes / median(runs['ours']):.1f} MB/s, CPU {cpu:.2f} of ideal",
        runs=runs,
    )
    of_two = ratio(runs["single"], runs["ours"])
    yield Figure("W2", "process over single mode", of_two, "x", least=1.8)

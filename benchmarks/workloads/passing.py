"""Eight trivial operators: as one chain, as eight nodes, and by hand in one pass."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.comparing import same_bytes
from benchmarks.figures import Figure
from benchmarks.measuring import Run, ideal, median, ours, ratio
from benchmarks.operators import EIGHT


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the chain's share of the ideal, and how much less it takes than the nodes."""
    rows = bench.size(500_000, 100_000)
    source = bench.source(f"texts{rows}", corpus.texts(rows))
    settings = {"_concurrency_mode": "process", "_max_workers": bench.workers}
    runs = bench.in_turn(
        {
            "ideal": ideal(source, "eight", workers=bench.workers),
            "promised": ideal(source, "eight", workers=bench.workers, promised=True),
            "chain": ours(source, ("eight", settings)),
            "nodes": ours(source, *((one.__name__, settings) for one in EIGHT)),
        },
        _same_last,
    )
    cpu = ratio(runs["ideal"], runs["chain"], _cpu)
    yield Figure(
        workload="chain",
        name=f"{rows:,} records, eight parts",
        value=ratio(runs["ideal"], runs["chain"]),
        unit="of ideal",
        least=0.85,
        note=f"{rows / median(runs['chain']):,.0f} records/s, CPU {cpu:.2f} of ideal",
        runs=runs,
    )
    yield Figure(
        workload="chain",
        name=f"{rows:,} records, a script that checks and syncs",
        value=ratio(runs["ideal"], runs["promised"]),
        unit="of ideal",
        note=f"the chain is {ratio(runs['promised'], runs['chain']):.2f} of that",
    )
    cpu = ratio(runs["nodes"], runs["chain"], _cpu)
    yield Figure(
        workload="chain",
        name=f"{rows:,} records, eight nodes over the chain",
        value=ratio(runs["nodes"], runs["chain"]),
        unit="times",
        least=3,
        note=f"CPU {cpu:.2f} times",
    )


def _same_last(runs: Mapping[str, Run]) -> None:
    """Compare the last results; the nodes have one each."""
    same_bytes({name: replace(run, outputs=run.outputs[-1:]) for name, run in runs.items()})


def _cpu(run: Run) -> float:
    return run.cpu_seconds

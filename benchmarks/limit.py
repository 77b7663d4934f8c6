"""The engine's share of the limit: of a hand-written script, with and without the promises."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, Run, ideal, median, ratio


def against_limit(
    bench: Bench,
    workload: str,
    name: str,
    source: Path,
    rows: int,
    passes: Sequence[str],
    ours: Contender,
    *,
    workers: int,
    goal: float | None = None,
    promised_goal: float | None = None,
) -> Iterator[Figure]:
    """Yield the engine's share of the script's speed, then of a script with the promises.

    The second script also does the work that every result of the package needs: a check of every
    value for JSON, a digest of the file as it is read back, and a sync.
    """
    runs = bench.in_turn(
        {
            "ideal": ideal(source, *passes, workers=workers),
            "promised": ideal(source, *passes, workers=workers, promised=True),
            "ours": ours,
        }
    )
    cpu = ratio(runs["ideal"], runs["ours"], _cpu)
    yield Figure(
        workload=workload,
        name=f"{rows:,} records, {name}",
        value=ratio(runs["ideal"], runs["ours"]),
        unit="of ideal",
        least=goal,
        note=f"{rows / median(runs['ours']):,.0f} records/s, CPU {cpu:.2f} of ideal",
        runs=runs,
    )
    yield Figure(
        workload=workload,
        name=f"{rows:,} records, on {workers}",
        value=ratio(runs["promised"], runs["ours"]),
        unit="of a script that checks and syncs",
        least=promised_goal,
        note=f"the script is {ratio(runs['ideal'], runs['promised']):.2f} of ideal",
    )


def _cpu(run: Run) -> float:
    return run.cpu_seconds

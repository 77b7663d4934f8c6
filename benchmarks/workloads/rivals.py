"""Other libraries on W1 and W2: ratios of records per second."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.comparing import verdict
from benchmarks.figures import Figure
from benchmarks.measuring import Contender, ContenderError, Run, ideal, ours
from benchmarks.measuring import measure as run_once

_LIMIT_SECONDS = 180.0


class Rival(NamedTuple):
    """One library, in one of its modes, and its part of a workload's input."""

    name: str
    mode: str
    upper_rows: int
    documents: int  # megabytes


RIVALS = [
    Rival("lazyllm", "process", 2_000, 5),
    Rival("lazyllm", "thread", 20_000, 5),
    Rival("lazyllm", "single", 50_000, 5),
    Rival("datajuicer", "", 5_000, 10),
    Rival("datatrove", "", 100_000, 20),
    Rival("datasets", "", 100_000, 20),
    Rival("ray", "", 20_000, 20),
    Rival("torchdata", "process", 100_000, 20),
    Rival("torchdata", "thread", 50_000, 10),
    Rival("daft", "", 100_000, 20),
    Rival("polars", "", 100_000, 20),
]


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the figures; a peer without an environment is reported as missing."""
    for name, size in (("upper", 100_000), ("clean", 20)):
        yield from against_all(bench, name, _source(bench, name, size))


class Pace(NamedTuple):
    """The speed of a run."""

    records_per_second: float
    cpu_microseconds: float  # a record

    @classmethod
    def of(cls, run: Run, source: Path) -> "Pace":
        """Return the pace of a run over ``source``."""
        with source.open("rb") as file:
            records = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 22), b""))
        return cls(records / run.seconds, run.cpu_seconds / records * 1e6)


def against_all(bench: Bench, name: str, source: Path) -> Iterator[Figure]:
    """Yield the engine's rate over each rival's, measured just before and just after it."""
    before = our_pace(bench, name, source)
    for rival in RIVALS:
        figure = against(bench, rival, name, before)
        if not figure.runs:
            yield figure
            continue
        after = our_pace(bench, name, source)
        rates = before.records_per_second, after.records_per_second
        yield replace(figure, value=figure.value * sum(rates) / (2 * rates[0]))
        before = after


def our_pace(bench: Bench, name: str, source: Path) -> Pace:
    """Return the engine's pace, after a check of the result."""
    node = (name, {"_concurrency_mode": "process", "_max_workers": bench.workers})
    right = ideal(source, name, workers=bench.workers)
    runs = bench.in_turn({"ideal": right, "ours": ours(source, node)}, rounds=1)
    return Pace.of(runs["ours"][0], source)


def _source(bench: Bench, name: str, size: int) -> Path:
    if name == "upper":
        return bench.source(f"texts{size}", corpus.texts(size))
    return bench.source(f"documents{size}", corpus.documents(size))


def against(bench: Bench, rival: Rival, name: str, mine: Pace) -> Figure:
    """Return the engine's rate over a rival's; ``nan`` with the reason if it has no result."""
    workload = "W1" if name == "upper" else "W2"
    what = f"over {rival.name} {rival.mode}".rstrip()
    python = (bench.peers or Path()) / rival.name / "bin" / "python"
    if bench.peers is None or not python.exists():
        return Figure(workload, what, float("nan"), "x", note="not installed")
    source = _source(bench, name, rival.upper_rows if name == "upper" else rival.documents)
    specification: dict[str, Any] = {
        "source": str(source),
        "operator": name,
        "workers": bench.workers,
        "mode": rival.mode,
    }
    contender = Contender(
        f"benchmarks.peers.{rival.name}", specification, str(python), limit=_LIMIT_SECONDS
    )
    out, right = bench.folder / "peer", bench.folder / "right"
    try:
        run = run_once(contender, out)
        expected = run_once(ideal(source, name, workers=1), right).outputs[0]
        found = verdict(expected, run.outputs)
    except ContenderError as error:
        reason = " ".join(str(error).split())[-120:]
        return Figure(workload, what, float("nan"), "x", note=f"failed: {reason}")
    finally:
        for folder in (out, right):
            shutil.rmtree(folder, ignore_errors=True)
    pace = Pace.of(run, source)
    note = (
        f"{pace.records_per_second:,.0f} records/s, "
        f"{pace.cpu_microseconds / mine.cpu_microseconds:.2f} x our CPU, "
        f"start {run.start_seconds:.1f} s, {found}"
    )
    value = mine.records_per_second / pace.records_per_second
    return Figure(workload, what, value, "x", note=note, runs={rival.name: [run]})

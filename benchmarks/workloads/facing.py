"""FACE: operators as Dagster assets against plain assets that do nothing."""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Final

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import ROOT, ContenderError

LAYOUTS = ("steps", "single_step")
_PROCESSES: Final = 8  # ratios differ by a tenth from one process to the next, for any measurement
_ROUNDS: Final = 0.4  # of the requested rounds, in each process
_NODE_ROUNDS: Final = 3  # at least: single rounds differ by a half


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the cost of definitions, and of a run of eight operators."""
    nodes = bench.size(1_000, 300)
    for layout in LAYOUTS:
        yield from definitions(bench, layout, nodes)
    yield from chain(bench, "steps", "single", check=True)
    for layout in LAYOUTS:
        for mode in ("single", "thread", "process"):
            yield from chain(bench, layout, mode)
        yield from chain(bench, layout, "process", threaded=True)
    yield from node(bench)


def definitions(bench: Bench, layout: str, nodes: int) -> Iterator[Figure]:
    """Yield the ratio of the times to build and resolve operators and as many plain assets."""
    name = f"definitions of {nodes:,}, {layout}"
    given = {"measure": "definitions", "layout": layout, "nodes": nodes}
    yield from _figures(bench, name, given, most=1.3)


def chain(
    bench: Bench,
    layout: str,
    mode: str,
    *,
    nodes: int = 8,
    check: bool = False,
    threaded: bool = False,
) -> Iterator[Figure]:
    """Yield the ratio of the times of a run of eight operators and of eight plain assets.

    Plain assets have no check. With the check of an operator, a run has two events more per step,
    each of which costs Dagster more than an operator with few records.
    """
    source = bench.source("face", corpus.texts(1_000))
    given = {"measure": "chain", "layout": layout, "mode": mode, "nodes": nodes}
    given |= {"source": str(source), "check": check, "threaded": threaded}
    # Steps of Dagster's usual executor run in processes with threads. Only runs in the process of a
    # command have none: reported, but without a goal.
    most = None if check or (mode == "process" and not threaded) else 1.2
    name = f"chain of {nodes}, {layout}, {mode}{', with its check' if check else ''}"
    name += ", in a process with threads" if threaded else ""
    yield from _figures(bench, name, given, most=most)


def node(bench: Bench) -> Iterator[Figure]:
    """Yield what a node of 100 records costs, of what assets with a pickle cost, in CPU seconds.

    The rival does what a user writes by hand for what a node shows: it counts failed records, adds
    counts, first rows and columns, and yields the result of one check. It keeps no checkpoint, no
    data version and no lineage, and syncs nothing. The ratio to an asset without metadata and check
    has no goal: two events more are most of it.
    """
    source = bench.source("face_small", corpus.texts(100))
    given = {"measure": "node", "layout": "steps", "mode": "single", "nodes": 20}
    given |= {"source": str(source)}
    processes = range(bench.size(_PROCESSES, 2))
    rounds = [each for _ in processes for each in _rounds(bench, given, _NODE_ROUNDS)]
    goals = {"with metadata and a check": 1.4, "without": None}
    for rival, (name, most) in enumerate(goals.items(), 1):
        ours, plain = (statistics.median(one[which][1] for one in rounds) for which in (0, rival))
        yield Figure(
            workload="FACE",
            name=f"node of 100 records, against a pickled asset {name}",
            value=statistics.median(one[0][1] / one[rival][1] for one in rounds),
            unit="x CPU",
            most=most,
            note=f"{ours / 20 * 1000:.1f} ms against {plain / 20 * 1000:.1f} ms a node",
        )


def _figures(
    bench: Bench, name: str, given: dict[str, object], most: float | None
) -> Iterator[Figure]:
    """Yield the ratio of seconds within a round; a busy machine's CPU seconds are in the note."""
    rounds = [each for _ in range(bench.size(_PROCESSES, 2)) for each in _rounds(bench, given)]
    cpu = statistics.median(ours[1] / plain[1] for ours, plain in rounds)
    fastest = [min(one[which][0] for one in rounds) for which in (0, 1)]
    yield Figure(
        workload="FACE",
        name=name,
        value=statistics.median(ours[0] / plain[0] for ours, plain in rounds),
        unit="x plain",
        most=most,
        note=f"CPU {cpu:.2f}; {fastest[0]:.2f} s against {fastest[1]:.2f} s",
    )


def _rounds(bench: Bench, given: dict[str, object], least: int = 1) -> list[list[list[float]]]:
    """Return seconds and CPU seconds of operators and plain assets, for each round of a process."""
    rounds = max(least, round(bench.rounds * _ROUNDS))
    with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
        specification = json.dumps({**given, "rounds": rounds, "out": folder})
        command = [sys.executable, "-m", "benchmarks.face", specification]
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if process.returncode:
        msg = f"benchmarks.face ended with {process.returncode}:\n{process.stderr[-2000:]}"
        raise ContenderError(msg)
    return list(json.loads(process.stdout.splitlines()[-1])["rounds"])

"""Agents of one core each, as processes of this machine, against one run with as many workers.

What the agents cost is the same on a cluster, but for the network.
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks import corpus
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import Run, median, ours, ratio

_MESSAGES_A_SECOND = 2.0  # of an agent
_HEAD_SHARE = 0.02  # of all CPU seconds
_GROWTH_MEGABYTES = 16.0
_SMALLER = 4


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the share of the speed of one machine, and what the head costs, on W1 and on W2."""
    megabytes, rows = bench.size(400, 20), bench.size(4_000_000, 100_000)
    computing = bench.source(f"documents{megabytes}", corpus.documents(megabytes))
    trivial = bench.source(f"texts{rows}", corpus.texts(rows))
    yield from against_one_machine(bench, "computing", computing, "clean", 0.9)
    yield from against_one_machine(bench, "trivial", trivial, "upper", 0.7)
    fewer = rows // _SMALLER
    smaller = bench.source(f"texts{fewer}", corpus.texts(fewer))
    yield growth_of_head(bench, smaller, trivial)


def against_one_machine(
    bench: Bench, kind: str, source: Path, name: str, goal: float
) -> Iterator[Figure]:
    """Yield the share of the speed of one run with as many workers, and the cost of the head."""
    mode = {"_concurrency_mode": "process"}
    runs = bench.in_turn(
        {
            "machine": ours(source, (name, {**mode, "_max_workers": bench.workers})),
            "agents": ours(source, (name, mode), agents=bench.workers),
        }
    )
    cpu = ratio(runs["machine"], runs["agents"], _cpu)
    yield Figure(
        workload="scale",
        name=f"{kind}, {bench.workers} agents against one machine",
        value=ratio(runs["machine"], runs["agents"]),
        unit="of its speed",
        least=goal,
        note=f"{median(runs['agents']):.0f} s, CPU {cpu:.2f}",
        runs=runs,
    )
    yield Figure(
        workload="scale",
        name=f"{kind}, CPU of the head",
        value=median(runs["agents"], _head_share),
        unit="of all",
        # In the trivial workload it is the composition of the result: nothing else computes.
        most=_HEAD_SHARE if kind == "computing" else None,
    )
    yield Figure(
        workload="scale",
        name=f"{kind}, messages of an agent",
        value=median(runs["agents"], _messages) / bench.workers,
        unit="a second",
        most=_MESSAGES_A_SECOND,
    )


def growth_of_head(bench: Bench, smaller: Path, larger: Path) -> Figure:
    """Return how much more memory the head takes for four times the records."""
    node = ("upper", {"_concurrency_mode": "process"})
    contenders = {
        name: ours(source, node, agents=bench.workers)
        for name, source in (("smaller", smaller), ("larger", larger))
    }
    runs = bench.in_turn(contenders, check=lambda _: None, rounds=1)
    small, large = (median(runs[name], _head_bytes) / 1e6 for name in contenders)
    return Figure(
        workload="scale",
        name=f"memory of the head, {_SMALLER} times the records",
        value=large - small,
        unit="MB more",
        most=_GROWTH_MEGABYTES,
        note=f"{small:.0f} and {large:.0f} MB at most",
        runs=runs,
    )


def _cpu(run: Run) -> float:
    """Return the CPU seconds of a run with its agents, which include their start."""
    facts = run.facts
    away = "agents_cpu_seconds" in facts
    return facts["own_cpu_seconds"] + facts["agents_cpu_seconds"] if away else run.cpu_seconds


def _head_share(run: Run) -> float:
    return float(run.facts["own_cpu_seconds"]) / _cpu(run)


def _messages(run: Run) -> float:
    return float(run.facts["messages"]) / run.seconds


def _head_bytes(run: Run) -> float:
    return float(run.facts["own_peak_bytes"])

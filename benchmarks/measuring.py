"""Run contenders in turn, each in a new process, and measure their use of resources."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.processes import kill_session, proportional_memory, tree

ROOT = Path(__file__).parents[1]
_SAMPLE_SECONDS = 0.1
_LIMIT_SECONDS = 900.0


class ContenderError(Exception):
    """A contender's process failed."""


@dataclass(frozen=True)
class Contender:
    """A script that is measured.

    Attributes:
        module: The module to run with ``-m``.
        specification: Its arguments; ``out`` is added, the empty folder of the run.
        python: The interpreter.
        memory: Whether to sample the memory of its process tree.
        limit: Seconds after which it is killed.
    """

    module: str
    specification: Mapping[str, Any]
    python: str = sys.executable
    memory: bool = False
    limit: float = _LIMIT_SECONDS


@dataclass(frozen=True)
class Run:
    """One run of a contender.

    Attributes:
        seconds: From input file to complete published result, after the imports.
        start_seconds: The time before that: interpreter and imports.
        cpu_seconds: CPU seconds of its whole process tree, without interpreter and imports.
        peak_bytes: Largest memory (PSS) of the tree; 0 if not sampled.
        load: The load of the machine before it started.
        outputs: Its results.
        facts: Its other reported facts.
    """

    seconds: float
    start_seconds: float
    cpu_seconds: float
    peak_bytes: int
    load: float
    outputs: list[Path]
    facts: dict[str, Any] = field(default_factory=dict)


def ours(source: Path, *nodes: tuple[str, dict[str, Any]], memory: bool = False, **more: Any):
    """Return the executor of this package as a contender."""
    specification = {"source": str(source), "nodes": nodes, **more}
    return Contender("benchmarks.ours", specification, memory=memory)


def ideal(
    source: Path, *passes: str, workers: int, memory: bool = False, promised: bool = False
) -> Contender:
    """Return the hand-written script as a contender; ``promised``: one that checks and syncs."""
    specification = {"source": str(source), "passes": passes, "workers": workers}
    specification["promised"] = promised
    return Contender("benchmarks.ideal", specification, memory=memory)


@contextmanager
def started(contender: Contender, out: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a contender in a new session; its remaining processes are killed at the end."""
    out.mkdir(parents=True, exist_ok=True)
    specification = {**contender.specification, "out": str(out)}
    command = [contender.python, "-m", contender.module, json.dumps(specification)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # users do not compile at every start either
    with (out / "stdout").open("wb") as answers, (out / "stderr").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=answers, stderr=log, start_new_session=True
        )
        try:
            yield process
        finally:
            kill_session(process.pid)
            if process.returncode is None:
                process.wait()


def measure(contender: Contender, out: Path) -> Run:
    """Run ``contender`` with the folder ``out`` and return what it took.

    Raises:
        ContenderError: It failed or took too long; its last words are in the message.
    """
    os.sync()  # else a run would pay for the writing of the one before
    load, launched = os.getloadavg()[0], time.perf_counter()
    with started(contender, out) as process:
        cpu_seconds, peak = _watch(process, contender)
    lines = (out / "stdout").read_text(encoding="utf-8", errors="replace").split("\n")
    answer = next((line for line in reversed(lines) if line.startswith("{")), None)
    if process.returncode or answer is None:
        words = (out / "stderr").read_text(encoding="utf-8", errors="replace")[-2000:]
        msg = f"{contender.module} ended with {process.returncode}:\n{words}"
        raise ContenderError(msg)
    facts = json.loads(answer)
    return Run(
        seconds=facts.pop("seconds"),
        start_seconds=facts["began"] - launched,
        cpu_seconds=cpu_seconds - facts["cpu_before"],
        peak_bytes=peak,
        load=load,
        outputs=[Path(path) for path in facts.pop("outputs")],
        facts=facts,
    )


def _watch(process: "subprocess.Popen[bytes]", contender: Contender) -> tuple[float, int]:
    """Wait for the end; return CPU seconds and peak memory of the tree."""
    peak, until = 0, time.monotonic() + contender.limit
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime, peak
        if contender.memory:
            peak = max(peak, proportional_memory(tree(process.pid)))
        if time.monotonic() > until:
            msg = f"{contender.module} was not done after {contender.limit:.0f} s"
            raise ContenderError(msg)
        time.sleep(_SAMPLE_SECONDS)


def in_turn(
    contenders: Mapping[str, Contender],
    rounds: int,
    folder: Path,
    check: Callable[[Mapping[str, Run]], None],
) -> dict[str, list[Run]]:
    """Run ``contenders`` in turn, ``rounds`` times.

    Args:
        contenders: The contenders by name.
        rounds: The number of rounds.
        folder: The folder of the results; they are deleted after each round.
        check: Checks the results of the first round, and raises if they are wrong.
    """
    runs: dict[str, list[Run]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(rounds):
        try:
            for name in reversed(names) if number % 2 else names:
                runs[name].append(measure(contenders[name], folder / name))
            if number == 0:
                check({name: found[0] for name, found in runs.items()})
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return runs


def ratio(
    over: list[Run], under: list[Run], value: Callable[[Run], float] = lambda run: run.seconds
) -> float:
    """Return the median over the rounds of ``value`` of one contender over another's."""
    return statistics.median(value(a) / value(b) for a, b in zip(over, under, strict=True))


def median(runs: list[Run], value: Callable[[Run], float] = lambda run: run.seconds) -> float:
    """Return the median of ``value``."""
    return statistics.median(map(value, runs))

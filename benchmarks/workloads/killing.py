"""Kills: a run is killed at half of its calls, and started again as its documentation says.

The calls are counted where they finish: in the function, or by the server that answers.
"""

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from benchmarks import ledger
from benchmarks.bench import Bench
from benchmarks.corpus import documents
from benchmarks.figures import Figure
from benchmarks.measuring import ROOT, Contender, ContenderError, Run, started
from benchmarks.measuring import measure as run_once
from benchmarks.operators import Record
from benchmarks.processes import end_tree

ROWS = 6_953
_AT = 0.5
_LIMIT_SECONDS = 240.0
_IN_FLIGHT = 20
_LATENCY_SECONDS = 0.02


class Victim(NamedTuple):
    """A program that is killed: its environment, module, kind of calls and further options."""

    name: str
    environment: str
    module: str
    asks: bool = False
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


OURS = [
    Victim("dagster-dataops, threads", "", "ours", options={"mode": "thread"}),
    Victim("dagster-dataops, processes", "", "ours", options={"mode": "process"}),
    Victim("dagster-dataops, a model", "", "ours", asks=True, options={"mode": "async"}),
]
PEERS = [
    Victim("Ray Data, 1 file", "ray", "ray", options={"files": 1}),
    Victim("Ray Data, 20 files", "ray", "ray", options={"files": 20}),
    Victim("DataChain", "datachain", "datachain"),
    Victim("DataChain, batches of 100", "datachain", "datachain", options={"batch": 100}),
    Victim("Metaxy, writes of 500", "metaxy", "metaxy", options={"batch": 500}),
    Victim("LazyLLM, threads", "lazyllm", "lazyllm", options={"mode": "thread"}),
    Victim("LazyLLM, processes", "lazyllm", "lazyllm", options={"mode": "process"}),
    Victim("datatrove, 20 files", "datatrove", "datatrove", options={"files": 20}),
    Victim("datatrove, 2 files", "datatrove", "datatrove", options={"files": 2}),
    Victim("DataDesigner", "datadesigner", "datadesigner", asks=True),
    Victim(
        "DataDesigner, groups of 100",
        "datadesigner",
        "datadesigner",
        asks=True,
        options={"batch": 100},
    ),
    Victim("bespoke curator", "curator", "curator", asks=True),
    Victim("distilabel", "distilabel", "distilabel", asks=True),
]


@dataclass(frozen=True)
class Verdict:
    """The cost of a kill.

    Attributes:
        finished: The calls that were finished when the run was killed.
        repeated: Those that were made again.
        lost: The input records without a result.
        doubled: The results beyond one of each record.
        ordered: Whether the results are in input order.
    """

    finished: int
    repeated: int
    lost: int
    doubled: int
    ordered: bool

    @classmethod
    def of(cls, before: list[int], after: list[int], written: list[int], rows: int) -> "Verdict":
        """Compare the calls before and after the kill, and the results, with the input."""
        finished = set(before)
        unique = set(written)
        return cls(
            finished=len(before),
            repeated=sum(number in finished for number in after),
            lost=rows - len(unique),
            doubled=len(written) - len(unique),
            ordered=written == sorted(written),
        )

    def __str__(self) -> str:
        order = "in input order" if self.ordered else "not in input order"
        return (
            f"{self.repeated:,} of {self.finished:,} repeated, {self.lost:,} lost, "
            f"{self.doubled:,} doubled, {order}"
        )


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield a figure for each program; one without an environment is reported as missing."""
    rows = bench.size(ROWS, ROWS // 10)
    source = bench.source(f"killed{rows}", numbered(rows))
    for victim in OURS + PEERS:
        yield killed(bench, victim, source, rows)


def numbered(rows: int) -> Iterator[Record]:
    """Yield documents whose text begins with their number."""
    for _, record in zip(range(rows), documents(math.inf), strict=False):
        yield {"id": record["id"], "text": f"{record['id']} {record['text'][:3000]}"}


def killed(bench: Bench, victim: Victim, source: Path, rows: int) -> Figure:
    """Return the share of finished calls that were repeated; ``nan`` if there is no result."""
    python = sys.executable
    if victim.environment:
        python = str((bench.peers or Path()) / victim.environment / "bin" / "python")
        if bench.peers is None or not Path(python).exists():
            return Figure("kill", victim.name, math.nan, "%", note="not installed")
    out = bench.folder / "killed"
    book = bench.folder / "ledger"
    os.environ[ledger.LEDGER] = str(book)
    try:
        with _server(victim) as address:
            specification = {"source": str(source), "rows": rows, "address": address}
            specification |= {"in_flight": _IN_FLIGHT, "workers": bench.workers, **victim.options}
            module = f"benchmarks.peers.{victim.module}_killed"
            contender = Contender(module, specification, python, limit=_LIMIT_SECONDS)
            kill(contender, out, book, int(rows * _AT))
            before = ledger.numbers(book)
            run = run_once(contender, out)
        after = ledger.numbers(book)[len(before) :]
        verdict = Verdict.of(before, after, results(run), rows)
    except ContenderError as error:
        reason = " ".join(str(error).split())[-300:]
        return Figure("kill", victim.name, math.nan, "%", note=f"failed: {reason}")
    finally:
        del os.environ[ledger.LEDGER]
        book.unlink(missing_ok=True)
        shutil.rmtree(out, ignore_errors=True)
    share = 100 * verdict.repeated / verdict.finished
    return Figure("kill", victim.name, share, "%", note=str(verdict), runs={victim.name: [run]})


def kill(contender: Contender, out: Path, book: Path, wanted: int) -> None:
    """Start a contender, and SIGKILL all its processes when enough calls are finished.

    Raises:
        ContenderError: It ended before, or took too long.
    """
    with started(contender, out) as process:
        until = time.monotonic() + contender.limit
        while ledger.calls(book) < wanted:
            if process.poll() is not None or time.monotonic() > until:
                words = (out / "stderr").read_text(encoding="utf-8", errors="replace")[-2000:]
                msg = f"{contender.module} did not come to {wanted:,} calls:\n{words}"
                raise ContenderError(msg)
            time.sleep(0.002)
        end_tree(process.pid)
    time.sleep(1.0)  # a server still answers the requests that it has


def results(run: Run) -> list[int]:
    """Return the numbers of the records of the results, in the order of files and lines."""
    numbers: list[int] = []
    for path in run.outputs:
        with path.open("rb") as file:
            numbers += [int(orjson.loads(line)["id"]) for line in file]
    return numbers


@contextmanager
def _server(victim: Victim) -> Iterator[str]:
    """Yield the address of a counting server, if the program asks one."""
    if not victim.asks:
        yield ""
        return
    command = [sys.executable, "-m", "benchmarks.counting_server", json.dumps(_LATENCY_SECONDS)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()

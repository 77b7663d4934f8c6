"""The victim of campaigns: one attempt of one operator. Runs in a separate process.

python -m tests.faults.victim FOLDER MODE WORKLOAD ATTEMPT [EARLIER ATTEMPT ...]
"""

import asyncio
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dagster_dataops import JsonlDataset, config
from dagster_dataops.data import data_register
from dagster_dataops.library.dedup.exact import Exact
from tests.faults import calls, moments
from tests.faults.workloads import Row, become, become_random
from tests.nodes import NodeFolder, OperatorExecutor, ResumePolicy, RunContext

WORKERS = 3


def note(record: Row) -> None:
    """Record that a call has returned."""
    moments.arm()  # a worker that was not forked comes here first
    calls.note(record["n"])


def _act(record: Row, function: Any) -> Any:
    if record["seconds"]:
        time.sleep(record["seconds"])
    try:
        return function(record)
    finally:
        note(record)


@data_register("data.campaign", _max_workers=WORKERS)
def work(record):
    return _act(record, become)


@data_register("data.campaign", _max_workers=WORKERS)
def work_randomly(record):
    return _act(record, become_random)


@data_register("data.campaign", _max_workers=WORKERS)
async def work_async(record):
    if record["seconds"]:
        await asyncio.sleep(record["seconds"])
    try:
        return become(record)
    finally:
        note(record)


class Unique(Exact):
    """Deduplication that records its calls."""

    def sketch(self, record):
        if record["seconds"]:
            time.sleep(record["seconds"])
        note(record)
        if record["bad"]:
            msg = f"bad {record['n']}"
            raise ValueError(msg)
        return super().sketch(record)


def operator_of(mode: str, *, randomly: bool) -> Any:
    """Return the operator of a mode."""
    if mode == "async":
        return work_async()
    settings = {"_max_workers": WORKERS, "_concurrency_mode": mode}
    if mode in {"spawned", "selection"}:
        settings["_concurrency_mode"] = "process"
    if mode == "selection":
        return Unique(input_key="text", **settings)
    return (work_randomly if randomly else work)(**settings)


def main(folder: str, mode: str, workload: str, attempt: str, *earlier: str) -> None:
    home = Path(folder)
    if mode != "spawned" or os.environ.get("MOMENT", "").split(":")[0] in moments.IN_PARENT:
        moments.arm()
    if mode == "spawned":  # a second thread forbids forking
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    context = RunContext(
        run=attempt,
        resume=ResumePolicy.AUTO,
        lock_seconds=10,
        earlier_runs=frozenset(earlier),
        result_format=config.result_format,
    )
    dataset = JsonlDataset.of_file(home / "input.jsonl")
    operator = operator_of(mode, randomly=workload == "flaky")
    report = OperatorExecutor(context).run(operator, [dataset], NodeFolder(home / "node", "node"))
    sys.stdout.write("".join(f"{attempt}: {note}\n" for note in report.notes))


if __name__ == "__main__":
    from tests.faults import victim  # by its name: workers import the operator's module

    victim.main(*sys.argv[1:])

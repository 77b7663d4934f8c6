"""A code location whose operators are as slow as a test wants, and write down every call.

The environment variable SLOW_PIPELINE_HOME names a folder. It holds the records (texts.jsonl), the
results, for every node ``<node>.calls`` with a line a call (record, process, time), and what makes
a node slow: ``<node>.pace``, seconds a record and the first record that takes them.
"""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from fragile import fragile  # beside this file, rewritten by the test of edited code
from typing_extensions import override

from dagster_dataops import (
    DataOpsIOManager,
    DataOpsResource,
    JsonlDataset,
    Operator,
    Pipeline,
    RunReport,
    build_operator_assets,
    data_register,
    pipeline,
)

HOME = Path(os.environ["SLOW_PIPELINE_HOME"])


@data_register("data.slow")
def shout(record: dict, node: str) -> dict:
    """Make a text loud, at the pace of its node."""
    descriptor = os.open(HOME / f"{node}.calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(descriptor, f"{record['id']} {os.getpid()} {time.time()}\n".encode())
    os.close(descriptor)
    pace = HOME / f"{node}.pace"
    if pace.exists():
        seconds, first = pace.read_text().split()
        if record["id"] >= int(first):
            time.sleep(float(seconds))
    return record | {"text": record["text"].upper()}


@data_register("data.slow", _concurrency_mode="thread")
def judge(record: dict) -> list[dict] | None:
    """Drop every seventh text, and fail with a message that looks like Markdown at some."""
    if record["id"] % 7 == 0:
        return []
    if record["id"] % 50 == 1:
        msg = f"<b>no</b> | `answer` to *{record['id']}*, see [this](http://example.org)"
        raise ValueError(msg)
    return None


class Mortal(DataOpsResource):
    """Dies once right after a result was published, if there is a file ``die_after_publishing``."""

    @override
    def run_operator(
        self, context: Any, operator: Operator, inputs: Sequence[JsonlDataset], *more: Any
    ) -> RunReport:
        report = super().run_operator(context, operator, inputs, *more)
        order = HOME / "die_after_publishing"
        if order.exists():
            order.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return report


def slow(node: str, mode: Any, workers: int) -> Pipeline:
    with pipeline(node) as ppl:
        ppl.shout = shout(node=node, _concurrency_mode=mode, _max_workers=workers)
    return ppl


with pipeline("browsed") as browsed:
    browsed.loud = shout(node="browsed", _concurrency_mode="thread", _max_workers=4)
    browsed.judged = judge()

with pipeline("edited") as edited:
    edited.fragile = fragile()

PIPELINES = [
    browsed,
    edited,
    slow("relaunched", "thread", 8),
    slow("reexecuted", "process", 2),
    slow("terminated", "thread", 32),
    slow("terminated_processes", "process", 2),
    slow("orphaned", "thread", 8),
    slow("orphaned_processes", "process", 2),
    slow("retried", "process", 2),
    slow("published", "thread", 8),
]

dataops = Mortal(root=str(HOME / "results"), lock_seconds=30)
defs = dg.Definitions(
    assets=[
        asset
        for ppl in PIPELINES
        for asset in build_operator_assets(
            ppl,
            source=HOME / "texts.jsonl",
            retry_policy=dg.RetryPolicy(max_retries=1) if ppl.name == "retried" else None,
        )
    ],
    resources={"dataops": dataops, "dataops_io": DataOpsIOManager(dataops=dataops)},
)

"""A code location whose operators have a given speed and record every call.

The environment variable SLOW_PIPELINE_HOME names a folder. It contains the records (texts.jsonl),
the results, and the files of `paced`.
"""

import asyncio
import time
from functools import partial
from typing import Any

import dagster as dg
from fragile import fragile  # beside this file; the test of edited code rewrites it
from paced import HOME, pauses
from served_settings import CLIENTS, RESOURCE, executor

from dagster_dataops import DataPipelineBuilder, Pipeline, data_register, pipeline, read_jsonl
from dagster_dataops.assets import build_operator_assets
from dagster_dataops.assets.definitions import dataops_resources
from dagster_dataops.assets.runtime.llm_resource import with_clients


@data_register("data.slow", _drain_seconds=0)
def shout(record: dict, node: str) -> dict:
    """Convert a text to upper case, at the speed of its node."""
    for seconds in pauses(record, node):
        time.sleep(seconds)
    return record | {"text": record["text"].upper()}


@data_register("data.slow", _drain_seconds=0)
async def shout_async(record: dict, node: str) -> dict:
    """Do the same on an event loop."""
    for seconds in pauses(record, node):
        await asyncio.sleep(seconds)
    return record | {"text": record["text"].upper()}


def slow(node: str, mode: Any, workers: int, **settings: Any) -> Pipeline:
    operator = shout_async if mode == "async" else shout
    with pipeline(node) as ppl:
        ppl.shout = operator(node=node, _concurrency_mode=mode, _max_workers=workers, **settings)
    return ppl


def pair(node: str) -> Pipeline:
    """Return two operators; the first is always quick."""
    with pipeline(node) as ppl:
        ppl.quick = shout(node=f"{node}_quick", _concurrency_mode="single")
        ppl.shout = shout(node=node, _concurrency_mode="thread", _max_workers=8)
    return ppl


def siblings(node: str) -> Pipeline:
    """Return two operators that do not depend on each other."""
    with pipeline(node) as ppl:
        for name in ("one", "two"):
            operator = shout(node=f"{node}_{name}", _concurrency_mode="thread", _max_workers=8)
            ppl.add(name, operator, inputs=[ppl.source])
    return ppl


def streamed(node: str) -> Pipeline:
    """Return a pipeline whose source is a slow stream."""
    with pipeline(node) as ppl:
        ppl.after = shout(node=f"{node}_after", _concurrency_mode="single")
    return ppl


def whole(name: str) -> Pipeline:
    """Return three operators in one step."""
    with pipeline(name) as ppl:
        for node in ("first", "second", "third"):
            operator = shout(node=f"{name}_{node}", _concurrency_mode="thread", _max_workers=8)
            ppl.add(node, operator)
    return ppl


def stream_of(node: str) -> DataPipelineBuilder:
    return read_jsonl(HOME / "texts.jsonl").map(partial(shout.function, node=node))


STREAMED = [
    streamed(f"streamed_{how}")
    for how in ("relaunched", "retried", "orphaned", "terminated", "published")
]

with pipeline("edited") as edited:
    edited.fragile = fragile()
with pipeline("afresh") as afresh:
    afresh.fragile = fragile()

PIPELINES = [
    edited,
    afresh,
    slow("relaunched", "thread", 8),
    slow("reexecuted", "process", 2),
    pair("asset_failure"),
    pair("all_steps"),
    pair("selected_steps"),
    slow("run_retried", "thread", 8),
    slow("terminated_thread", "thread", 64),
    slow("terminated_async", "async", 64),
    slow("terminated_process", "process", 2),
    slow("terminated_single", "single", 1),
    *(siblings(f"terminated_retrying_{how}") for how in ("in_process", "multiprocess")),
    slow("drained_thread", "thread", 100, _drain_seconds=60),
    slow("drained_async", "async", 100, _drain_seconds=60),
    slow("forced", "thread", 64),
    slow("told_to_end", "process", 2),
    slow("orphaned", "thread", 8),
    slow("orphaned_processes", "process", 2),
    slow("retried", "process", 2),
    slow("published", "thread", 8),
    slow("published_relaunched", "thread", 8),
    slow("outliving", "thread", 8),
    slow("outliving_processes", "process", 2),
    slow("interrupted", "thread", 8),
    slow("powerless", "process", 2),
    *(slow(f"concurrent_{number}", "thread", 8) for number in range(4)),
]
RETRIES = {
    "retried": dg.RetryPolicy(max_retries=1),
    "terminated_retrying_in_process": dg.RetryPolicy(max_retries=3),
    "terminated_retrying_multiprocess": dg.RetryPolicy(max_retries=3),
}
WHOLE = [whole(f"whole_{number}") for number in range(5)]

defs = dg.Definitions(
    assets=[
        asset
        for ppl in [*PIPELINES, *WHOLE]
        for asset in build_operator_assets(
            ppl,
            source=HOME / "texts.jsonl",
            retry_policy=RETRIES.get(ppl.name),
            layout="single_step" if ppl in WHOLE else "steps",
        )
    ]
    + [
        asset
        for ppl in STREAMED
        for asset in build_operator_assets(
            ppl,
            source=stream_of(ppl.name),
            stream_name="shout",
            retry_policy=dg.RetryPolicy(max_retries=1) if "retried" in ppl.name else None,
        )
    ],
    resources=dataops_resources(with_clients(RESOURCE, CLIENTS)),
    executor=executor,
)

"""Concurrency pools: named by node, and kept by a real instance."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.operators.registry import OperatorRegistry
from tests.assets.helpers import asset_of, definitions_of, pipeline_of

Records = Callable[[int], Path]


@pytest.fixture
def upper(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="thread")
    def upper(record: dict) -> None:
        record["text"] = record["text"].upper()

    return upper


def test_a_pool_belongs_to_its_node_alone(upper: Any, records: Records, root: Path) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    definitions = definitions_of(ppl, records(1), root, pools={"second": "llm"})
    assert asset_of(definitions, "docs", "second").op.pool == "llm"
    assert asset_of(definitions, "docs", "first").op.pool is None


def test_one_step_is_in_the_one_pool_that_is_named(
    upper: Any, records: Records, root: Path
) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    pools = {"second": "llm"}
    definitions = definitions_of(ppl, records(1), root, pools=pools, layout="single_step")
    assert asset_of(definitions, "docs", "first").op.pool == "llm"


def test_one_step_cannot_be_in_two_pools(upper: Any, records: Records, root: Path) -> None:
    ppl = pipeline_of(first=upper(), second=upper())
    pools = {"first": "disk", "second": "llm"}
    with pytest.raises(PipelineDefinitionError, match="in the pools disk, llm"):
        definitions_of(ppl, records(1), root, pools=pools, layout="single_step")


def test_a_pool_for_no_node_is_refused_with_the_nearest_name(
    upper: Any, records: Records, root: Path
) -> None:
    with pytest.raises(PipelineDefinitionError, match="'secnd', which is no node; did you mean 's"):
        definitions_of(pipeline_of(second=upper()), records(1), root, pools={"secnd": "llm"})


def test_a_limit_of_one_slot_keeps_two_runs_from_calling_at_a_time(
    registry: OperatorRegistry, records: Records, root: Path, tmp_path: Path
) -> None:
    lock, most = threading.Lock(), [0, 0]

    @registry("data.text", _concurrency_mode="single")
    def call(record: dict) -> None:
        with lock:
            most[0] += 1
            most[1] = max(most)
        time.sleep(0.02)
        with lock:
            most[0] -= 1

    ppl = pipeline_of(one=call())
    other = pipeline_of("other", two=call())
    overrides = {"concurrency": {"pools": {"granularity": "op"}}, "telemetry": {"enabled": False}}
    with dg.DagsterInstance.local_temp(str(tmp_path / "home"), overrides=overrides) as instance:
        instance.event_log_storage.set_concurrency_slots("llm", 1)
        jobs = [
            definitions_of(
                pipeline, records(20), root, pools={name: "llm"}
            ).resolve_implicit_global_asset_job_def()
            for pipeline, name in ((ppl, "one"), (other, "two"))
        ]
        results: list[dg.ExecuteInProcessResult] = []
        threads = [
            threading.Thread(target=lambda job=job: results.append(_execute(job, instance)))
            for job in jobs
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [result.success for result in results] == [True, True]
    assert most[1] == 1


def _execute(job: dg.JobDefinition, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    return job.execute_in_process(instance=instance)

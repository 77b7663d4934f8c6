"""Tests of dagster_dataops.assets.automation.batches_sensor, and of steps that wait for batches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsResource,
    LLMOperator,
    LLMResource,
    build_definitions,
    pipeline,
)
from tests.assets.helpers import write_jsonl
from tests.models.running_server import RunningServer, running_server
from tests.registries import OperatorRegistry


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server() as started:
        yield started


@pytest.fixture
def definitions(registry: OperatorRegistry, tmp_path: Path, server: RunningServer) -> Any:
    """Return a function that makes definitions, of an operator and a node downstream."""

    class Echo(LLMOperator):
        prompt = "say {{ text }}"

    echo = registry("data.demo")(Echo)

    @registry("data.demo", _concurrency_mode="single")
    def shout(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "answer": record["answer"].upper()}

    def make(**options: Any) -> dg.Definitions:
        with pipeline("cheap") as ppl:
            ppl.echo = echo(model="rule", delivery="batch")
            ppl.shout = shout()
        return build_definitions(
            ppl,
            source=str(write_jsonl(tmp_path / "in.jsonl", [{"text": "a"}, {"text": "b"}])),
            resource=DataOpsResource(root=str(tmp_path / "root")),
            clients={"default": LLMResource(base_url=server.address)},
            **options,
        )

    return make


def look(definitions: dg.Definitions, instance: dg.DagsterInstance) -> Any:
    """Return what the sensor says."""
    repository = definitions.get_repository_def()
    sensor = repository.get_sensor_def("cheap_batches")
    resources = {"dataops": definitions.resources["dataops"]}
    with dg.build_sensor_context(
        instance=instance, repository_def=repository, resources=resources
    ) as context:
        return sensor.evaluate_tick(context)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["assets", "single_step"])
def test_a_step_ends_without_a_result_and_the_sensor_launches_the_run_that_collects(
    definitions: Any, instance: dg.DagsterInstance, server: RunningServer, layout: str
):
    server.reset(batches="in_progress")
    defs = definitions() if layout == "assets" else definitions(layout=layout)
    job = defs.resolve_job_def("cheap_pipeline")

    first = job.execute_in_process(instance=instance)

    assert first.success
    assert not first.get_asset_materialization_events()
    (observed,) = first.get_asset_observation_events()
    shown = observed.event_specific_data.asset_observation.metadata
    assert "answered batches: 0 of 1" in shown["dagster_dataops/waiting"].value
    tick = look(defs, instance)
    assert tick.run_requests == []
    assert tick.skip_message == "the server has not finished the batches of 1 result"

    server.finish()
    (request,) = look(defs, instance).run_requests
    assert [key.path[-1] for key in request.asset_selection] == ["echo", "shout"]
    second = job.execute_in_process(
        instance=instance, asset_selection=request.asset_selection, tags=request.tags
    )
    made = {one.asset_key.path[-1] for one in second.get_asset_materialization_events()}
    assert made >= {"echo", "shout"}
    assert server.stats()["batches"] == 1
    assert not look(defs, instance).run_requests


@pytest.mark.slow
def test_a_run_with_the_option_cancel_cancels_the_batches_and_no_sensor_collects_them(
    definitions: Any, instance: dg.DagsterInstance, server: RunningServer
):
    server.reset(batches="in_progress")
    defs = definitions()
    job = defs.resolve_job_def("cheap_pipeline")
    job.execute_in_process(instance=instance)

    config = {"ops": {"cheap__echo": {"config": {"params": {"cancel": True}}}}}
    cancelling = job.execute_in_process(instance=instance, run_config=config)

    assert cancelling.success
    (observed,) = cancelling.get_asset_observation_events()
    shown = observed.event_specific_data.asset_observation.metadata
    assert "cancelled batch-0" in shown["dagster_dataops/waiting"].value
    assert not look(defs, instance).run_requests

    job.execute_in_process(instance=instance)
    assert server.stats()["batches"] == 2  # of the request that was not answered
    server.finish()
    assert job.execute_in_process(instance=instance).get_asset_materialization_events()
    assert (server.stats()["distinct"], server.stats()["batches"]) == (2, 2)


def test_a_run_that_failed_to_collect_is_launched_again_and_one_under_way_is_not(
    definitions: Any, instance: dg.DagsterInstance, server: RunningServer
):
    server.reset()
    defs = definitions()
    job = defs.resolve_job_def("cheap_pipeline")
    job.execute_in_process(instance=instance)

    (request,) = look(defs, instance).run_requests
    run = instance.create_run_for_job(job, tags=request.tags)
    assert not look(defs, instance).run_requests
    instance.report_run_failed(run)
    (again,) = look(defs, instance).run_requests

    assert request.run_key != again.run_key


def test_a_pipeline_without_batches_has_no_such_sensor(registry: OperatorRegistry, tmp_path: Path):
    @registry("data.demo")
    def keep(record: dict[str, Any]) -> dict[str, Any]:
        return record

    with pipeline("cheap") as ppl:
        ppl.keep = keep()

    assert not build_definitions(ppl, source="in.jsonl").sensors

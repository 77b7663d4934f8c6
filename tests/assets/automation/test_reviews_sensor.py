"""Tests of dagster_dataops.assets.automation.reviews_sensor, and of steps that wait for people."""

import os
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsResource, build_definitions, data, pipeline
from tests.assets.helpers import write_jsonl
from tests.library.review.reviewers import decide, questions
from tests.registries import OperatorRegistry


@pytest.fixture
def definitions(registry: OperatorRegistry, tmp_path: Path) -> Any:
    """Return a function that makes definitions, of a review and a node downstream."""

    @registry("data.demo", _concurrency_mode="single")
    def shout(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "text": record["text"].upper()}

    def make(**options: Any) -> dg.Definitions:
        with pipeline("checked") as ppl:
            ppl.ask = data.review.Ask("text")
            ppl.shout = shout()
        return build_definitions(
            ppl,
            source=str(write_jsonl(tmp_path / "in.jsonl", [{"text": "a"}, {"text": "b"}])),
            resource=DataOpsResource(root=str(tmp_path / "root")),
            **options,
        )

    return make


def look(definitions: dg.Definitions, instance: dg.DagsterInstance) -> Any:
    """Return what the sensor says."""
    repository = definitions.get_repository_def()
    sensor = repository.get_sensor_def("checked_reviews")
    resources = {"dataops": definitions.resources["dataops"]}
    with dg.build_sensor_context(
        instance=instance, repository_def=repository, resources=resources
    ) as context:
        return sensor.evaluate_tick(context)


@pytest.mark.parametrize("layout", ["assets", "single_step"])
def test_a_step_ends_without_a_result_and_the_sensor_launches_the_run_that_goes_on(
    definitions: Any, instance: dg.DagsterInstance, tmp_path: Path, layout: str
):
    defs = definitions() if layout == "assets" else definitions(layout=layout)
    job = defs.resolve_job_def("checked_pipeline")
    assert look(defs, instance).skip_message == "undecided questions: 0"

    first = job.execute_in_process(instance=instance)
    assert first.success
    assert not first.get_asset_materialization_events()
    (observed,) = first.get_asset_observation_events()
    shown = observed.event_specific_data.asset_observation.metadata
    assert "undecided questions: 2 of 2" in shown["dagster_dataops/waiting"].value
    (folder,) = (tmp_path / "root").rglob("review")
    decide(folder, lambda shown: {"decision": "keep"} if shown["text"] == "a" else {})
    tick = look(defs, instance)
    assert (tick.run_requests, tick.skip_message) == ([], "undecided questions: 1")

    decide(folder, lambda _: {"decision": "keep"}, "rest.jsonl")
    (request,) = look(defs, instance).run_requests
    assert [key.path[-1] for key in request.asset_selection] == ["ask", "shout"]
    second = job.execute_in_process(
        instance=instance, asset_selection=request.asset_selection, tags=request.tags
    )
    written = {one.asset_key.path[-1] for one in second.get_asset_materialization_events()}
    assert written >= {"ask", "shout"}
    assert not look(defs, instance).run_requests
    assert len(questions(folder)) == 1


def test_a_wrong_file_fails_one_run_that_names_it_until_the_file_is_changed(
    definitions: Any, instance: dg.DagsterInstance, tmp_path: Path
):
    defs = definitions()
    job = defs.resolve_job_def("checked_pipeline")
    job.execute_in_process(instance=instance)
    (folder,) = (tmp_path / "root").rglob("review")
    decide(folder, lambda _: {"decision": "kep"})

    (request,) = look(defs, instance).run_requests
    (same,) = look(defs, instance).run_requests
    assert request.run_key == same.run_key  # Dagster launches it once
    failed = job.execute_in_process(instance=instance, raise_on_error=False)
    assert not failed.success
    (failure,) = failed.get_step_failure_events()
    assert "decided.jsonl line 1: 'kep' is none of" in str(failure.event_specific_data.error)
    os.utime(folder / "decided.jsonl", ns=(1, 1))
    (changed,) = look(defs, instance).run_requests
    assert changed.run_key != request.run_key


def test_a_partition_has_questions_and_a_run_of_its_own(
    definitions: Any, instance: dg.DagsterInstance, tmp_path: Path
):
    for name in ("x", "y"):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"text": name}])
    with pipeline("checked") as ppl:
        ppl.ask = data.review.Ask("text", to=str(tmp_path / "people"))
    defs = build_definitions(
        ppl,
        source=str(tmp_path / "{partition}.jsonl"),
        resource=DataOpsResource(root=str(tmp_path / "root")),
        partitions_def=dg.StaticPartitionsDefinition(["x", "y"]),
    )
    job = defs.resolve_job_def("checked_pipeline")
    for key in ("x", "y"):
        job.execute_in_process(instance=instance, partition_key=key)
    folders = sorted(state.parent for state in (tmp_path / "people").rglob("state"))
    assert len(folders) == 2
    decide(folders[1], lambda _: {"decision": "keep"})
    (request,) = look(defs, instance).run_requests
    assert request.partition_key == "y"


def test_a_preview_asks_nobody(
    definitions: Any, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    job = definitions().resolve_job_def("checked_pipeline")
    config = {"ops": {"checked__ask": {"config": {"limit": 1}}}}
    preview = job.execute_in_process(
        instance=instance, run_config=config, asset_selection=[dg.AssetKey(["checked", "ask"])]
    )
    assert preview.success
    assert not list((tmp_path / "root").rglob("questions-*"))


def test_a_pipeline_without_reviews_has_no_such_sensor(registry: OperatorRegistry):
    @registry("data.demo")
    def keep(record: dict[str, Any]) -> dict[str, Any]:
        return record

    with pipeline("cheap") as ppl:
        ppl.keep = keep()
    assert not build_definitions(ppl, source="in.jsonl").sensors

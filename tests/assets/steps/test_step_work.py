"""Tests of the work of one step: skipped operators, and checks beside results, in both layouts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import Pipeline
from dagster_dataops.assets.steps import run_step
from tests.assets.helpers import Records, definitions_of, execute, log_of, pipeline_of
from tests.registries import OperatorRegistry


@pytest.fixture
def ppl(registry: OperatorRegistry) -> Pipeline:
    @registry("data.text", _concurrency_mode="single")
    def same(record: dict) -> dict:
        return record

    return pipeline_of(first=same(), second=same(), third=same())


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_operators_downstream_of_a_missing_result_are_skipped(
    layout: str,
    ppl: Pipeline,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    definitions = definitions_of(ppl, records(2), root, layout=layout)
    execute(definitions, instance)  # so that results exist that could be used by mistake

    def without_second(context: Any, plan: Any, *rest: Any) -> Iterator[Any]:
        if plan.node.name != "second":
            yield from run_step.run_step(context, plan, *rest)

    monkeypatch.setattr("dagster_dataops.assets.steps.step_work.run_step", without_second)
    result = execute(definitions, instance)
    assert result.success
    made = [e.asset_key.path[-1] for e in result.get_asset_materialization_events() if e.asset_key]
    assert made == ["first"]
    if layout == "single_step":
        told = "third is skipped: there is no new result upstream"
        assert told in log_of(instance, result.run_id)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_checks_come_from_the_steps_and_may_be_left_out(
    layout: str, ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    unchecked = dg.define_asset_job(
        "unchecked",
        selection=dg.AssetSelection.all() - dg.AssetSelection.all_asset_checks(),
    )
    ours = definitions_of(ppl, records(2), root, layout=layout)
    definitions = dg.Definitions.merge(ours, dg.Definitions(jobs=[unchecked]))
    evaluations = execute(definitions, instance).get_asset_check_evaluations()
    assert [one.asset_key.path[-1] for one in evaluations] == ["first", "second", "third"]
    result = definitions.resolve_job_def("unchecked").execute_in_process(instance=instance)
    assert len(result.get_asset_materialization_events()) == 3
    assert not result.get_asset_check_evaluations()


def test_nodes_of_one_step_are_tried_although_those_upstream_make_no_result(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(ppl, records(2), root, layout="single_step")
    execute(definitions, instance)
    (step,) = definitions.resolve_job_def("docs_pipeline").nodes
    config = {name: {"try": 1} for name in ("first", "second", "third")}
    result = execute(definitions, instance, {"ops": {step.name: {"config": config}}})
    assert not result.get_asset_materialization_events()
    observed = [
        event.asset_observation_data.asset_observation
        for event in result.get_asset_observation_events()
    ]
    names = [one.asset_key.path[-1] for one in observed if "dagster_dataops/tried" in one.metadata]
    assert names == ["first", "second", "third"]

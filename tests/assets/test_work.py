"""What one step runs: skipped operators, and checks beside results, in both layouts."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import Pipeline, dataops_resources, plan_pipeline
from dagster_dataops.assets import step
from dagster_dataops.assets.operator_step import StepOptions, operator_step
from dagster_dataops.assets.pipeline_step import pipeline_steps
from dagster_dataops.operators.registry import OperatorRegistry
from tests.assets.helpers import definitions_of, execute, log_of, pipeline_of, resource_at

Records = Callable[[int], Path]


@pytest.fixture
def ppl(registry: OperatorRegistry) -> Pipeline:
    @registry("data.text", _concurrency_mode="single")
    def same(record: dict) -> dict:
        return record

    return pipeline_of(first=same(), second=same(), third=same())


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_what_takes_a_result_that_was_not_made_is_skipped(
    layout: str,
    ppl: Pipeline,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    definitions = definitions_of(ppl, records(2), root, layout=layout)
    execute(definitions, instance)  # so that there are results that could be taken by mistake

    def without_second(context: Any, plan: Any, *rest: Any) -> Iterator[Any]:
        if plan.node.name != "second":
            yield from step.run_step(context, plan, *rest)

    monkeypatch.setattr("dagster_dataops.assets.work.run_step", without_second)
    result = execute(definitions, instance)
    assert result.success
    made = [e.asset_key.path[-1] for e in result.get_asset_materialization_events() if e.asset_key]
    assert made == ["first"]
    if layout == "single_step":
        told = "docs/third is skipped: there is no new result of docs/second"
        assert told in log_of(instance, result.run_id)


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_checks_of_a_plan_are_those_of_its_step(
    layout: str,
    ppl: Pipeline,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def with_check(context: Any, plan: Any, *rest: Any) -> Iterator[Any]:
        yield from step.run_step(context, plan, *rest)
        if context.selected_asset_check_keys:
            key = plan.spec.key
            yield dg.AssetCheckResult(asset_key=key, check_name="whole", passed=True)

    monkeypatch.setattr("dagster_dataops.assets.work.run_step", with_check)
    planned = plan_pipeline(ppl, source=records(2))
    plans = [
        replace(plan, check_specs=[dg.AssetCheckSpec("whole", asset=plan.spec.key)])
        for plan in planned.plans
    ]
    planned = replace(planned, plans=plans)
    assets = (
        pipeline_steps(planned, "docs", StepOptions())
        if layout == "single_step"
        else [operator_step(plan, StepOptions()) for plan in plans]
    )
    resources = dataops_resources(resource_at(root))
    result = execute(dg.Definitions(assets=assets, resources=resources), instance)
    evaluations = result.get_asset_check_evaluations()
    assert [one.asset_key.path[-1] for one in evaluations] == ["first", "second", "third"]

    unchecked = dg.define_asset_job(
        "unchecked",
        selection=dg.AssetSelection.all() - dg.AssetSelection.all_asset_checks(),
    )
    definitions = dg.Definitions(assets=assets, jobs=[unchecked], resources=resources)
    result = definitions.resolve_job_def("unchecked").execute_in_process(instance=instance)
    assert len(result.get_asset_materialization_events()) == 3
    assert not result.get_asset_check_evaluations()

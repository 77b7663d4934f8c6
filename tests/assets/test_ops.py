"""Tests of a pipeline as a job of ops."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import Pipeline, assets, pipeline
from dagster_dataops.errors import OperatorDefinitionError
from tests.assets.helpers import (
    Records,
    definitions_of,
    execute,
    metadata_of,
    numbered,
    pipeline_of,
    resource_at,
    result_of,
)
from tests.registries import OperatorRegistry


@pytest.fixture
def ppl(registry: OperatorRegistry) -> Pipeline:
    @registry("data.text", _concurrency_mode="thread")
    def add(record: dict, suffix: str = "!") -> None:
        """Add a suffix."""
        record["text"] += suffix

    @registry("data.text", rewrite_func="forward_batch_input")
    def zipped(left: list[dict], right: list[dict]) -> list[dict]:
        return [
            {"texts": [one["text"], other["text"]]} for one, other in zip(left, right, strict=True)
        ]

    with pipeline("docs") as ppl:
        ppl.first = add()
        ppl.second = add(suffix="?")
        ppl.add("zipped", zipped(), inputs=[ppl.first, ppl.second])
    return ppl


def texts() -> Iterator[dict[str, Any]]:
    """Three texts."""
    yield from numbered(3)


EXPECTED = [{"texts": [f"text {number}!", f"text {number}!?"]} for number in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize("form", [str, Path])
def test_a_job_runs_the_pipeline_over_a_file(
    form: Callable[[Path], Any],
    ppl: Pipeline,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    resources = {"dataops": resource_at(root)}
    job = assets.build_operator_job(ppl, source=form(records(3)), resources=resources)
    assert job.name == "docs_job"
    result = job.execute_in_process(instance=instance)
    assert result.success
    assert result.output_for_node("zipped").read() == EXPECTED


def test_a_job_runs_the_pipeline_over_the_records_of_a_function(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance
) -> None:
    job = assets.build_operator_job(
        ppl, source=texts, name="mine", resources={"dataops": resource_at(root)}
    )
    assert job.name == "mine"
    job.execute_in_process(instance=instance)
    assert result_of(root, "docs", "texts") == list(numbered(3))
    assert result_of(root, "docs", "zipped") == EXPECTED


def test_a_lambda_cannot_name_an_op(ppl: Pipeline) -> None:
    with pytest.raises(OperatorDefinitionError):
        assets.build_operator_job(ppl, source=lambda: iter(()))


def test_resources_may_come_from_the_definitions_around_the_job(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    job = assets.build_operator_job(ppl, source=str(records(3)))
    definitions = dg.Definitions(jobs=[job], resources={"dataops": resource_at(root)})
    assert definitions.resolve_job_def("docs_job").execute_in_process(instance=instance).success


def test_ops_take_params_and_settings_from_the_launchpad(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    job = assets.build_operator_job(
        ppl, source=records(1), resources={"dataops": resource_at(root)}
    )
    config = {"ops": {"first": {"config": {"params": {"suffix": "+"}, "max_workers": 1}}}}
    job.execute_in_process(config, instance=instance)
    assert result_of(root, "docs", "first") == [{"id": 0, "text": "text 0+"}]
    with pytest.raises(dg.DagsterInvalidConfigError):
        job.execute_in_process(
            {"ops": {"first": {"config": {"params": {"ending": "+"}}}}}, instance=instance
        )


def test_ops_report_their_result_in_the_metadata_of_their_output(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    job = assets.build_operator_job(
        ppl, source=records(3), resources={"dataops": resource_at(root)}
    )
    result = job.execute_in_process(instance=instance)
    (event,) = [e for e in result.events_for_node("first") if e.is_successful_output]
    metadata = event.step_output_data.metadata
    assert metadata["dagster/row_count"].value == 3
    assert metadata["dagster_dataops/rows_in"].value == 3


def test_every_node_is_an_op_with_its_description(ppl: Pipeline) -> None:
    ops = assets.build_operator_ops(ppl)
    assert list(ops) == ["first", "second", "zipped"]
    assert ops["first"].description == "Add a suffix."


@pytest.mark.slow
def test_ops_resume_after_a_failure_and_report_the_same_as_assets(
    registry: OperatorRegistry, records: Records, root: Path, tmp_path: Path
) -> None:
    fails = [3]

    @registry("data.text", _concurrency_mode="single", _ignore_errors=False)
    def fragile(record: dict) -> dict:
        if record["id"] in fails:
            fails.clear()
            msg = "no answer"
            raise ConnectionError(msg)
        return record

    ppl = pipeline_of(fragile=fragile())
    job = assets.build_operator_job(
        ppl, source=records(5), resources={"dataops": resource_at(root)}
    )
    with dg.DagsterInstance.ephemeral() as instance:
        assert not job.execute_in_process(instance=instance, raise_on_error=False).success
        result = job.execute_in_process(instance=instance)
    (event,) = [e for e in result.events_for_node("fragile") if e.is_successful_output]
    of_op = {name: value.value for name, value in event.step_output_data.metadata.items()}

    fails.append(3)
    definitions = definitions_of(ppl, records(5), tmp_path / "assets")
    with dg.DagsterInstance.ephemeral() as instance:
        assert not execute(definitions, instance, raise_on_error=False).success
        of_asset = metadata_of(execute(definitions, instance), "docs", "fragile")

    said = {name.removeprefix("dagster_dataops/"): value for name, value in of_op.items()}
    assert said["rows_resumed"] == 3
    # Times, places and runs differ, and only assets have keys for the origins of columns.
    of_asset.pop("dagster/column_lineage", None)
    differing = {"records_per_second", "path", "dagster/uri", "notes"}
    differing |= {"resumed_from", "trace"}
    assert {name: said[name] for name in said.keys() - differing} == {
        name: of_asset[name] for name in of_asset.keys() - differing
    }
    assert said.keys() == of_asset.keys()

"""Tests of dataops_assets: a step with a body of the user, and its specs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsResource,
    DataOpsTranslator,
    Pipeline,
    dataops_assets,
    dataops_resources,
)
from dagster_dataops import assets as parts
from dagster_dataops.errors import PipelineDefinitionError
from tests.assets.helpers import (
    Records,
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
    @registry("data.text", _concurrency_mode="single")
    def add(record: dict, suffix: str = "!") -> None:
        """Add a suffix."""
        record["text"] += suffix

    return pipeline_of(first=add(), second=add(suffix="?"))


def definitions_of(*assets: Any, root: Path) -> dg.Definitions:
    return dg.Definitions(assets=list(assets), resources=dataops_resources(resource_at(root)))


def run_all(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
    yield from dataops.run(context)


def test_a_body_runs_the_selected_operators(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    seen: list[str] = []

    @dataops_assets(ppl, source=records(3))
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        """Make documents loud."""
        for event in dataops.run(context):
            if isinstance(event, dg.MaterializeResult):
                seen.append(event.asset_key.path[-1])
            yield event

    definitions = definitions_of(docs, root=root)
    execute(definitions, instance)
    assert seen == ["first", "second"]
    assert result_of(root, "docs", "second")[0]["text"] == "text 0!?"
    execute(definitions, instance, only=[["docs", "second"]])
    assert seen == ["first", "second", "second"]
    assert docs.op.name == "docs"


def test_a_body_may_have_other_resources_in_any_order(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance
) -> None:
    class Bell(dg.ConfigurableResource):
        tone: str

    rung: list[str] = []

    @dg.asset
    def raw() -> list[dict[str, Any]]:
        return list(numbered(2))

    @dataops_assets(ppl, source=raw)
    def docs(context: dg.AssetExecutionContext, bell: Bell, *, dataops: DataOpsResource) -> Any:
        rung.append(bell.tone)
        return dataops.run(context)

    resources = {**dataops_resources(resource_at(root)), "bell": Bell(tone="ding")}
    definitions = dg.Definitions(assets=[raw, docs], resources=resources)
    execute(definitions, instance)
    assert rung == ["ding"]
    assert len(result_of(root, "docs", "second")) == 2


def test_launches_configure_operators_below_the_name_of_the_op(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    docs = dataops_assets(ppl, source=records(1), name="nightly")(run_all)
    config = {"ops": {"nightly": {"config": {"second": {"params": {"suffix": "+"}}}}}}
    execute(definitions_of(docs, root=root), instance, config)
    assert result_of(root, "docs", "second")[0]["text"] == "text 0!+"


def test_dagsters_options_of_the_step_are_kept(ppl: Pipeline, records: Records) -> None:
    partitions = dg.StaticPartitionsDefinition(["a", "b"])
    docs = dataops_assets(
        ppl,
        source=records(1).parent / "{partition}.jsonl",
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.multi_run(),
        op_tags={"cost": "high"},
        retry_policy=dg.RetryPolicy(max_retries=3),
        pool="llm",
    )(run_all)
    assert docs.partitions_def == partitions
    assert docs.backfill_policy == dg.BackfillPolicy.multi_run()
    assert docs.op.tags["cost"] == "high"
    assert docs.op.retry_policy == dg.RetryPolicy(max_retries=3)
    assert docs.op.pool == "llm"
    assert docs.can_subset


def test_the_options_are_those_of_build_definitions(ppl: Pipeline, records: Records) -> None:
    eager = dg.AutomationCondition.eager()
    options = {
        "partitions_def": dg.StaticPartitionsDefinition(["a", "b"]),
        "unpartitioned": ["first", "second"],
        "automation_condition": {"second": eager},
    }
    source = records(1).parent / "{partition}.jsonl"
    docs = dataops_assets(ppl, source=source, **options)(run_all)
    specs = parts.build_operator_asset_specs(ppl, source=source, **options)
    assert [spec.partitions_def for spec in docs.specs] == [None, None]
    assert [spec.automation_condition for spec in docs.specs] == [None, eager]
    assert [spec.replace_attributes(skippable=False) for spec in docs.specs] == specs


def test_one_step_cannot_have_different_partitions(ppl: Pipeline, records: Records) -> None:
    partitions = dg.StaticPartitionsDefinition(["a", "b"])
    source = records(1).parent / "{partition}.jsonl"
    with pytest.raises(PipelineDefinitionError, match="'first' and 'second' have different part"):
        dataops_assets(ppl, source=source, partitions_def=partitions, unpartitioned=["second"])


class Renamed(DataOpsTranslator):
    def get_asset_spec(self, data: parts.DataOpsTranslatorData) -> dg.AssetSpec:
        return super().get_asset_spec(data).replace_attributes(key=["new", data.node.name])


def test_the_specs_can_be_built_separately(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    specs = parts.build_operator_asset_specs(
        ppl, source=records(2), dagster_dataops_translator=Renamed()
    )
    docs = dataops_assets(ppl, source=records(2), dagster_dataops_translator=Renamed())(run_all)
    subset = [spec.replace_attributes(skippable=False) for spec in docs.specs]
    assert subset == specs
    assert [spec.key.path for spec in specs] == [["new", "first"], ["new", "second"]]
    assert [dep.asset_key.path for dep in specs[1].deps] == [["new", "first"]]
    execute(definitions_of(docs, root=root), instance)
    assert len(result_of(root, "new", "second")) == 2


def texts() -> Iterator[dict[str, Any]]:
    """Two texts."""
    yield from numbered(2)


def test_a_source_function_is_refused_with_a_remedy(ppl: Pipeline) -> None:
    with pytest.raises(PipelineDefinitionError, match="'texts', which needs a separate step"):
        dataops_assets(ppl, source=texts)


def test_a_body_can_request_more_metadata(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @dataops_assets(ppl, source=records(2))
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        yield from dataops.run(context).fetch_row_count().fetch_column_metadata()

    metadata = metadata_of(execute(definitions_of(docs, root=root), instance), "docs", "second")
    columns = metadata["dagster/column_schema"].columns
    assert [(column.name, column.type) for column in columns] == [
        ("id", "integer"),
        ("text", "string"),
    ]
    assert metadata["dagster/row_count"] == 2


def test_a_step_without_planned_operators_is_refused_with_a_remedy(
    root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset
    def mine(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Any:
        return list(dataops.run(context))

    with pytest.raises(dg.DagsterInvariantViolationError, match="Decorate the function with @data"):
        execute(definitions_of(mine, root=root), instance)

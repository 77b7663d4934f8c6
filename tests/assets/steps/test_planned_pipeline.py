"""Tests of a planned pipeline in custom assets and ops."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsResource, Pipeline, dataops_resources
from dagster_dataops import assets as parts
from tests.assets.helpers import (
    Records,
    execute,
    metadata_of,
    numbered,
    pipeline_of,
    resource_at,
    result_of,
    tags_of,
)
from tests.registries import OperatorRegistry


@pytest.fixture
def ppl(registry: OperatorRegistry) -> Pipeline:
    @registry("data.text", _concurrency_mode="single")
    def add(record: dict, suffix: str = "!") -> None:
        record["text"] += suffix

    return pipeline_of(first=add(), second=add(suffix="?"))


def texts() -> Iterator[dict[str, Any]]:
    """Two texts."""
    yield from numbered(2)


@pytest.mark.parametrize("form", ["file", "function"])
def test_an_op_materializes_the_whole_pipeline(
    form: str, ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    planned = parts.plan_pipeline(ppl, source=texts if form == "function" else records(2))

    @dg.op(out={})
    def nightly(context: dg.OpExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        yield from dataops.run(context, planned).fetch_column_metadata()

    @dg.job(resource_defs={"dataops": resource_at(root)})
    def job() -> None:
        nightly()

    result = job.execute_in_process(instance=instance)
    events = result.get_asset_materialization_events()
    keys = [event.asset_key.path[-1] for event in events if event.asset_key]
    assert keys == ["texts", "first", "second"]  # a file that was read is reported as well
    assert result_of(root, "docs", "second")[1]["text"] == "text 1!?"
    metadata = metadata_of(result, "docs", "second")
    assert metadata["dagster/row_count"] == 2
    assert metadata["dagster/column_schema"].columns[0].name == "id"
    assert tags_of(instance, "docs", "second")["dagster/data_version"].startswith("xxh3:")


def test_a_custom_multi_asset_runs_the_selected_assets(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    planned = parts.plan_pipeline(ppl, source=records(2))

    @dg.multi_asset(specs=planned.specs, can_subset=True)
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        yield from dataops.run(context, planned)

    definitions = dg.Definitions(assets=[docs], resources=dataops_resources(resource_at(root)))
    execute(definitions, instance, only=[["docs", "first"]])
    assert not (root / "docs" / "second").exists()
    execute(definitions, instance, only=[["docs", "second"]])
    assert result_of(root, "docs", "second")[0]["text"] == "text 0!?"

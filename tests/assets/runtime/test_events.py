"""Tests of the event iterator: lazy, chainable, and without failures of the step."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

import dagster_dataops
from dagster_dataops import (
    DataOpsResource,
    JsonlDataset,
    Pipeline,
    dataops_assets,
    dataops_resources,
)
from tests.assets.helpers import (
    Records,
    execute,
    log_of,
    metadata_of,
    numbered,
    pipeline_of,
    resource_at,
    write_jsonl,
)
from tests.registries import OperatorRegistry


@pytest.fixture
def ppl(registry: OperatorRegistry) -> Pipeline:
    @registry("data.text", _concurrency_mode="single")
    def same(record: dict) -> dict:
        return record

    return pipeline_of(first=same(), second=same())


def test_metadata_that_cannot_be_fetched_is_logged_and_left_out(
    ppl: Pipeline,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: object) -> dict[str, Any]:
        msg = "no memory"
        raise MemoryError(msg)

    monkeypatch.setattr("dagster_dataops.assets.runtime.events._column_schema", fail)

    @dataops_assets(ppl, source=records(2))
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        yield from dataops.run(context).fetch_column_metadata().fetch_row_count()

    resources = dataops_resources(resource_at(root))
    result = execute(dg.Definitions(assets=[docs], resources=resources), instance)
    metadata = metadata_of(result, "docs", "second")
    assert metadata["dagster/row_count"] == 2
    assert metadata["dagster/column_schema"].columns[0].name == "id"  # of the sample
    told = [line for line in log_of(instance, result.run_id) if "left out" in line]
    assert told == [
        f"docs/{node}: some metadata is left out (MemoryError: no memory)"
        for node in ("first", "second")
    ]


def test_fetched_columns_are_those_of_all_records_and_not_of_a_sample(
    ppl: Pipeline, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    rare = [{"id": n, **({"rare": None} if n == 997 else {})} for n in range(2000)]
    source = write_jsonl(tmp_path / "rare.jsonl", rare)

    @dataops_assets(ppl, source=source)
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        yield from dataops.run(context).fetch_column_metadata()

    resources = dataops_resources(resource_at(root))
    result = execute(dg.Definitions(assets=[docs], resources=resources), instance)
    schema = metadata_of(result, "docs", "second")["dagster/column_schema"]
    assert schema.constraints.other == ["all 2,000 records"]
    assert [(column.name, column.type) for column in schema.columns] == [
        ("id", "integer"),
        ("rare", "null"),
    ]
    assert [column.constraints.nullable for column in schema.columns] == [False, True]


def test_operators_run_as_the_events_are_requested(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    there: list[bool] = []

    @dataops_assets(ppl, source=records(2))
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        events = dataops.run(context).fetch_row_count()
        for event in events:
            if isinstance(event, dg.MaterializeResult):
                there.append((root / "docs" / "second").exists())
            yield event

    resources = dataops_resources(resource_at(root))
    execute(dg.Definitions(assets=[docs], resources=resources), instance)
    assert there == [False, True]


def test_lines_without_a_known_count_are_counted(tmp_path: Path) -> None:
    dataset = JsonlDataset.of_file(write_jsonl(tmp_path / "a.jsonl", list(numbered(7))))
    assert dataset.rows is None
    parts = {"a": dataset, "b": dataset}
    found: list[Any] = []

    @dg.asset
    def mine(context: dg.AssetExecutionContext) -> None:
        event = dg.MaterializeResult(asset_key="mine", value=parts, metadata={"own": 1})
        found.extend(
            dagster_dataops.assets.DataOpsEventIterator(iter([event]), context).fetch_row_count()
        )

    dg.materialize([mine])
    assert found[0].metadata == {"dagster/row_count": 14, "own": 1}


def test_a_failed_check_is_a_warning_in_an_op(instance: dg.DagsterInstance) -> None:
    checks = [
        dg.AssetCheckResult(passed=passed, check_name=name, asset_key="x", description="3 of 4")
        for name, passed in (("good", True), ("bad", False))
    ]

    @dg.op
    def own(context: dg.OpExecutionContext) -> None:
        assert list(dagster_dataops.assets.DataOpsEventIterator(iter(checks), context)) == []

    @dg.job
    def job() -> None:
        own()

    result = job.execute_in_process(instance=instance)
    assert "check bad failed: 3 of 4" in log_of(instance, result.run_id)

"""Tests of pipelines as assets: metadata, results for other assets, and staleness."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsIOManager, DataOpsTranslator, Pipeline, pipeline
from dagster_dataops import assets as parts
from tests.assets.helpers import (
    Records,
    definitions_of,
    execute,
    log_of,
    metadata_of,
    numbered,
    pipeline_of,
    read_jsonl,
    resource_at,
    result_of,
    spec_of,
    tags_of,
    write_jsonl,
)
from tests.registries import OperatorRegistry


@pytest.fixture
def sift(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="thread", _max_workers=4)
    def sift(record: dict, step: int = 3) -> Any:
        """Drop every third record, fail at every fourth of the others, double the rest."""
        if record["id"] % step == 0:
            return []
        if record["id"] % 4 == 0:
            msg = f"cannot do | {record['id']}"
            raise ValueError(msg)
        return [record, record]

    return sift


@pytest.fixture
def join(registry: OperatorRegistry) -> Any:
    @registry("data.text", rewrite_func="forward_batch_input")
    def join(left: list[dict], right: list[dict]) -> list[dict]:
        known = {record["id"] for record in right}
        return [{**record, "kept": record["id"] in known} for record in left]

    return join


def test_the_metadata_of_a_materialization_reconciles(
    sift: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(sift=sift()), records(12), root)
    result = execute(definitions, instance)
    metadata = metadata_of(result, "docs", "sift")
    folder = root / "docs" / "sift"
    size = (folder / "sift_results.jsonl").stat().st_size
    assert metadata["dagster/row_count"] == 12
    assert metadata["dagster/size_bytes"] == size
    names = ("rows_in", "rows_dropped", "rows_failed")
    assert [metadata[name] for name in names] == [12, 4, 2]
    assert metadata["records_per_second"] > 0
    assert metadata["dagster/uri"] == (folder / "sift_results.jsonl").as_uri()
    assert metadata["preview"].startswith("| id | text |\n| --- | --- |\n| 1 | text 1 |")
    assert "| ValueError | 2 | line 5: cannot do \\| 4 |" in metadata["errors"]
    assert metadata["errors"].endswith("_all of them: sift\\_error.jsonl_")
    assert [row["input"]["id"] for row in read_jsonl(folder / "sift_error.jsonl")] == [4, 8]
    warning = f"sift: 2 of 12 records failed; they are in {folder / 'sift_error.jsonl'}"
    assert warning in log_of(instance, result.run_id)


def test_without_failures_the_metadata_has_no_errors(
    sift: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(sift=sift(step=1)), records(12), root)
    metadata = metadata_of(execute(definitions, instance), "docs", "sift")
    assert metadata["preview"] == "_no rows_"
    assert not {"errors", "notes"} & metadata.keys()


def test_an_empty_source_gives_empty_results(
    sift: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(sift=sift(), again=sift()), records(0), root)
    metadata = metadata_of(execute(definitions, instance), "docs", "again")
    assert (metadata["dagster/row_count"], metadata["dagster/size_bytes"]) == (0, 0)


def diamond(sift: Any, join: Any) -> Pipeline:
    with pipeline("docs") as ppl:
        ppl.left = sift(step=2)
        ppl.add("right", sift(step=3), inputs=[ppl.source])
        ppl.add("joined", join(), inputs=[ppl.left, ppl.right])
        ppl.add("both", sift(step=7), inputs=[ppl.left, ppl.source])
        ppl.add("twice", sift(step=7), inputs=[ppl.left, ppl.left])
    return ppl


def test_nodes_with_several_inputs_depend_on_them_and_take_them_in_order(
    sift: Any, join: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(diamond(sift, join), records(6), root)
    execute(definitions, instance)

    def deps(name: str) -> set[str]:
        found = spec_of(definitions, "docs", name).deps
        return {dep.asset_key.to_user_string() for dep in found}

    assert deps("joined") == {"docs/left", "docs/right"}
    assert deps("both") == {"docs/left", "docs/texts"}
    assert deps("twice") == {"docs/left"}
    assert [(r["id"], r["kept"]) for r in result_of(root, "docs", "joined")] == [
        (1, True),
        (1, True),
        (3, False),
        (3, False),
        (5, True),
        (5, True),
    ]
    left = [1, 1, 3, 3, 5, 5]
    doubled = [number for number in left for _ in range(2)]
    assert [r["id"] for r in result_of(root, "docs", "twice")] == doubled * 2
    rest = [1, 1, 2, 2, 3, 3, 5, 5]
    assert [r["id"] for r in result_of(root, "docs", "both")] == doubled + rest


def stale(definitions: dg.Definitions, instance: dg.DagsterInstance, *key: str) -> bool:
    """Whether the last materialization of ``key`` used other versions of its inputs than now."""
    prefix = "dagster/input_data_version/"
    return any(
        version != current_version(instance, *name.removeprefix(prefix).split("/"))
        for name, version in tags_of(instance, *key).items()
        if name.startswith(prefix)
    )


def current_version(instance: dg.DagsterInstance, *key: str) -> str:
    return tags_of(instance, *key)["dagster/data_version"]


@pytest.mark.slow
def test_equal_content_leaves_downstream_assets_fresh_and_changed_content_makes_them_stale(
    sift: Any, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    source = write_jsonl(tmp_path / "texts.jsonl", list(numbered(8)))
    definitions = definitions_of(pipeline_of(first=sift(), second=sift(step=5)), source, root)
    execute(definitions, instance)
    before = current_version(instance, "docs", "first")
    assert before.startswith("xxh3:")

    execute(definitions, instance, only=[["docs", "first"]])
    assert current_version(instance, "docs", "first") == before
    assert not stale(definitions, instance, "docs", "second")

    write_jsonl(source, [*numbered(8), {"id": 9, "text": "dropped"}])
    execute(definitions, instance, only=[["docs", "first"]])
    assert current_version(instance, "docs", "first") == before

    write_jsonl(source, [*numbered(8), {"id": 10, "text": "new"}])
    execute(definitions, instance, only=[["docs", "first"]])
    assert current_version(instance, "docs", "first") != before
    assert stale(definitions, instance, "docs", "second")


def test_a_single_asset_may_be_materialized_again(
    sift: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(first=sift(), second=sift()), records(8), root)
    execute(definitions, instance)
    before = (root / "docs/first/first_results.jsonl").stat().st_mtime_ns
    result = execute(definitions, instance, only=[["docs", "second"]])
    assert len(result.get_asset_materialization_events()) == 1
    assert (root / "docs/first/first_results.jsonl").stat().st_mtime_ns == before


def test_missing_partitions_of_an_upstream_asset_are_named(
    sift: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(first=sift(), second=sift()), records(8), root)
    with pytest.raises(Exception, match="Materialize the operator that writes it first"):
        execute(definitions, instance, only=[["docs", "second"]])


letters = dg.StaticPartitionsDefinition(["a", "../b"])


class Partitioned(DataOpsTranslator):
    def get_asset_spec(self, data: parts.DataOpsTranslatorData) -> dg.AssetSpec:
        return super().get_asset_spec(data).replace_attributes(partitions_def=letters)


def test_a_translator_may_partition_the_assets(
    sift: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(partitions_def=letters, io_manager_key="dataops_io")
    def raw(context: dg.AssetExecutionContext) -> list[dict[str, Any]]:
        return [{"id": 1, "text": context.partition_key}]

    ppl = pipeline_of(first=sift(), second=sift())
    definitions = definitions_of(
        ppl, raw, root, others=[raw], dagster_dataops_translator=Partitioned()
    )
    for key in letters.get_partition_keys():
        execute(definitions, instance, partition_key=key)
    base = root / "docs" / "second" / "partitions"
    found = {path.name: read_jsonl(path / "second_results.jsonl") for path in base.iterdir()}
    assert {name: {row["text"] for row in rows} for name, rows in found.items()} == {
        "a": {"a"},
        "%2E.%2Fb": {"../b"},
    }


def test_a_launch_that_changes_the_columns_changes_their_lineage(
    registry: OperatorRegistry, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", _concurrency_mode="thread")
    def copy(record: dict, input_key: str = "a", output_key: str = "made") -> None:
        record[output_key] = record[input_key]

    source = write_jsonl(tmp_path / "texts.jsonl", [{"a": 1, "b": 2}])
    definitions = definitions_of(pipeline_of(copy=copy()), source, root)
    config = {"ops": {"docs__copy": {"config": {"params": {"input_key": "b"}}}}}
    result = execute(definitions, instance, config)
    lineage = metadata_of(result, "docs", "copy")["dagster/column_lineage"]
    assert [dep.column_name for dep in lineage.deps_by_column["made"]] == ["b"]


def test_assets_can_be_built_for_separate_definitions(
    sift: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    assets = parts.build_operator_assets(pipeline_of(sift=sift()), source=records(4))
    dataops = resource_at(root)
    resources = {"dataops": dataops, "dataops_io": DataOpsIOManager(dataops=dataops)}
    result = dg.materialize(assets, resources=resources, instance=instance)
    assert result.success
    assert [record["id"] for record in result_of(root, "docs", "sift")] == [1, 1, 2, 2]


def test_a_custom_asset_takes_a_result_as_records(
    sift: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(ins={"texts": dg.AssetIn(key=["docs", "sift"])})
    def longest(texts: list[dict]) -> int:
        return max(record["id"] for record in texts)

    definitions = definitions_of(pipeline_of(sift=sift()), records(6), root, others=[longest])
    assert execute(definitions, instance).output_for_node("longest") == 5

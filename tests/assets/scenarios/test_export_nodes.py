"""Export operators as assets: metadata, staleness, previews, partitions and defs.yaml."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dagster_dataops import assets as parts
from dagster_dataops import data, pipeline
from dagster_dataops.errors import ExportError, PipelineDefinitionError
from tests.assets.component_project import WARNED_OF, Project
from tests.assets.helpers import (
    Records,
    definitions_of,
    execute,
    metadata_of,
    pipeline_of,
    resource_at,
    spec_of,
)
from tests.registries import OperatorRegistry

LAYOUTS = pytest.mark.parametrize("layout", ["steps", "single_step"])
LETTERS = dg.StaticPartitionsDefinition(["a", "b/c"])


@pytest.fixture
def mark(registry: OperatorRegistry) -> Callable[[], Any]:
    @registry("data.text", _concurrency_mode="single")
    def mark(record: dict) -> dict:
        return record | {"marked": True}

    return mark  # type: ignore[return-value]


def exporting(mark: Any, root: Path) -> Any:
    with pipeline("docs") as ppl:
        ppl.marked = mark()
        ppl.table = data.export.Parquet("out/docs.parquet")
        ppl.shards = data.export.WebDataset("out/shards/a-%d.tar", shard_bytes=2000)
        ppl.again = mark()
    return ppl


@LAYOUTS
def test_an_export_is_an_asset_whose_metadata_tells_path_format_rows_bytes_and_files(
    mark: Any, records: Records, root: Path, instance: dg.DagsterInstance, layout: Any
) -> None:
    definitions = definitions_of(exporting(mark, root), records(9), root, layout=layout)
    result = execute(definitions, instance)

    path = root / "out" / "docs.parquet"
    assert pq.read_table(path)["marked"].to_pylist() == [True] * 9
    table = metadata_of(result, "docs", "table")
    assert table["export_format"] == "parquet"
    assert table["dagster/size_bytes"] == path.stat().st_size
    assert table["dagster/row_count"] == 9
    assert table["dagster/uri"] == path.as_uri()
    assert "docs.parquet" in table["listing"]
    assert (table["rows_in"], table["rows_failed"]) == (9, 0)
    assert not {"rows_dropped", "dagster/column_schema", "preview"} & table.keys()
    shards = metadata_of(result, "docs", "shards")
    assert shards["dagster/uri"] == (root / "out" / "shards").as_uri()
    assert len(list((root / "out" / "shards").glob("*.tar"))) > 1
    assert metadata_of(result, "docs", "again")["dagster/row_count"] == 9
    spec = spec_of(definitions, "docs", "table")
    assert spec.kinds == {"python", "parquet"}
    assert [dep.asset_key.path for dep in spec.deps] == [["docs", "marked"]]
    assert [dep.asset_key.path for dep in spec_of(definitions, "docs", "again").deps] == [
        ["docs", "marked"]
    ]


@pytest.mark.slow
@LAYOUTS
def test_a_current_export_stays_and_a_missing_or_stale_one_is_written_again(
    mark: Any, records: Records, root: Path, instance: dg.DagsterInstance, layout: Any
) -> None:
    definitions = definitions_of(exporting(mark, root), records(9), root, layout=layout)
    path = root / "out" / "docs.parquet"
    execute(definitions, instance)
    before = path.stat()
    execute(definitions, instance)
    assert path.stat() == before

    path.unlink()
    execute(definitions, instance)
    assert pq.read_table(path).num_rows == 9
    records(4)
    result = execute(definitions, instance)
    assert pq.read_table(path).num_rows == 4
    assert metadata_of(result, "docs", "table")["dagster/row_count"] == 4


@LAYOUTS
def test_a_preview_writes_nothing_to_the_target(
    mark: Any, records: Records, root: Path, instance: dg.DagsterInstance, layout: Any
) -> None:
    definitions = definitions_of(exporting(mark, root), records(9), root, layout=layout)
    preview = definitions.resolve_job_def("docs_preview")
    assert preview.execute_in_process(instance=instance).success
    assert not (root / "out").exists()
    execute(definitions, instance)
    before = (root / "out" / "docs.parquet").stat()
    assert preview.execute_in_process(instance=instance).success
    assert (root / "out" / "docs.parquet").stat() == before


def test_a_failed_export_names_the_line_of_the_result_before_it(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    @registry("data.text", _concurrency_mode="single")
    def mixed(record: dict) -> dict:
        return {"value": record["id"] if record["id"] != 2 else "two"}

    ppl = pipeline_of(mixed=mixed(), table=data.export.Parquet("x.parquet"))
    with pytest.raises(ExportError, match=r"mixed_results.jsonl, line 3\), column 'value'"):
        execute(definitions_of(ppl, records(5), root), instance)
    assert not (root / "x.parquet").exists()


@LAYOUTS
def test_each_partition_is_exported_to_its_own_path(
    mark: Any, root: Path, instance: dg.DagsterInstance, layout: Any
) -> None:
    def texts(key: str) -> list[dict[str, Any]]:
        return [{"text": key}]

    ppl = pipeline_of(m=mark(), table=data.export.Csv("out/{partition}.csv"))
    definitions = definitions_of(ppl, texts, root, partitions_def=LETTERS, layout=layout)
    for key in LETTERS.get_partition_keys():
        result = execute(definitions, instance, partition_key=key)
    assert pd.read_csv(root / "out" / "a.csv")["text"].tolist() == ["a"]
    assert pd.read_csv(root / "out" / "b%2Fc.csv")["text"].tolist() == ["b/c"]
    assert metadata_of(result, "docs", "table")["dagster/partition_row_count"] == 1


def test_the_path_names_the_partition_exactly_if_there_are_partitions(
    mark: Any, root: Path, tmp_path: Path
) -> None:
    source = tmp_path / "{partition}.jsonl"
    with pytest.raises(PipelineDefinitionError, match=r"write \{partition\} in the path"):
        ppl = pipeline_of(table=data.export.Csv("x.csv"))
        definitions_of(ppl, source, root, partitions_def=LETTERS)
    with pytest.raises(PipelineDefinitionError, match=r"leave \{partition\} out"):
        definitions_of(pipeline_of(t=data.export.Csv("{partition}.csv")), tmp_path / "x", root)


def test_the_path_may_be_changed_in_the_launchpad(
    mark: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(table=data.export.Csv("one.csv"))
    definitions = definitions_of(ppl, records(2), root)
    config = {"ops": {"docs__table": {"config": {"params": {"path": "two.csv"}}}}}
    result = execute(definitions, instance, config)
    assert metadata_of(result, "docs", "table")["dagster/uri"] == (root / "two.csv").as_uri()
    assert not (root / "one.csv").exists()


def test_ops_export_too(mark: Any, records: Records, root: Path) -> None:
    job = parts.build_operator_job(
        exporting(mark, root), source=records(3), resources={"dataops": resource_at(root)}
    )
    assert job.execute_in_process().success
    assert pq.read_table(root / "out" / "docs.parquet").num_rows == 3


class TestYaml:
    pytestmark = WARNED_OF

    def test_exports_are_given_by_name(
        self, project: Project, instance: dg.DagsterInstance, root: Path
    ) -> None:
        project.write("""
            name: docs
            source: texts.jsonl
            operators:
              - {name: mark, operator: text.Normalize, output: exports/mark.csv}
              - {name: table, operator: export.Parquet, options: {path: out/docs.parquet}}
              - {name: more, operator: text.Normalize}
        """)
        with project.loaded() as definitions:
            execute(definitions, instance)
        assert pq.read_table(root / "out" / "docs.parquet").num_rows == 4
        assert len(pd.read_csv(project.sandbox.project_root / "exports" / "mark.csv")) == 4

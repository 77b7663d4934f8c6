"""Tests of the report of a pipeline as an asset."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import Drop, checks, data
from dagster_dataops.errors import PipelineDefinitionError
from tests.assets.helpers import Records, definitions_of, execute, pipeline_of, spec_of, write_jsonl
from tests.pipelines.reporting.conftest import read_report
from tests.registries import OperatorRegistry


@pytest.fixture
def odd(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="single")
    def odd(record: dict) -> Any:
        if record["id"] % 2 == 0:
            return Drop("even")
        return record | {"text": "odd"}

    return odd


def materialized(result: dg.ExecuteInProcessResult, *key: str) -> dg.AssetMaterialization:
    (found,) = result.asset_materializations_for_node("__".join(key))
    return found


def test_the_report_is_an_asset_after_the_last_ones(
    odd: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(one=odd(), two=odd()), records(6), root, report=True)
    graph = definitions.resolve_asset_graph()
    parents = graph.get(dg.AssetKey(["docs", "report"])).parent_keys
    assert {key.path[-1] for key in parents} == {"two"}
    assert spec_of(definitions, "docs", "report").group_name == "docs"

    job = definitions.resolve_job_def("docs_pipeline")
    found = materialized(job.execute_in_process(instance=instance), "docs", "report").metadata
    path = Path(str(found["dagster_dataops/path"].value))
    assert path == root / "docs/report/report.html"
    nodes = read_report(path)["nodes"]
    assert [(node["name"], node["rows_in"], node["dropped"]) for node in nodes] == [
        ("one", 6, 3),
        ("two", 3, 0),
    ]
    (change,) = nodes[0]["changes"]["rows"][0]["changes"]
    assert [piece.text for piece in change.after] == ["odd"]
    summary = str(found["dagster_dataops/report"].value)
    assert "| one | 6 | 3 | 3 | 0 |" in summary


def test_new_records_are_told_from_dropped_ones(
    odd: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(one=odd(), sum=data.stats.Summary(["id"]))
    options: dict[str, Any] = {"report": True, "checks": {"sum": [checks.max_dropped(0)]}}
    definitions = definitions_of(ppl, records(6), root, **options)
    result = definitions.resolve_job_def("docs_pipeline").execute_in_process(instance=instance)

    found = materialized(result, "docs", "sum").metadata
    assert found["dagster_dataops/rows_in"].value == 3
    assert found["dagster/row_count"].value == 1
    assert "dagster_dataops/rows_dropped" not in found
    summary = str(materialized(result, "docs", "report").metadata["dagster_dataops/report"].value)
    assert "| sum | 3 | 1 record from 3 |  | 0 |" in summary
    (check,) = [
        one for one in result.get_asset_check_evaluations() if one.check_name == "max_dropped"
    ]
    assert (check.passed, check.description) == (True, "1 record from 3; none is dropped.")


def test_without_the_option_there_is_no_report(odd: Any, records: Records, root: Path) -> None:
    definitions = definitions_of(pipeline_of(one=odd()), records(1), root)
    keys = definitions.resolve_asset_graph().materializable_asset_keys
    assert {key.path[-1] for key in keys} == {"one"}


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_the_report_shows_every_partition(
    odd: Any, tmp_path: Path, root: Path, instance: dg.DagsterInstance, layout: str
) -> None:
    days = dg.StaticPartitionsDefinition(["a/b", "c"])
    for day, name in (("a/b", "a%2Fb"), ("c", "c")):
        file = tmp_path / f"{name}.jsonl" if day == "c" else tmp_path / "a" / "b.jsonl"
        file.parent.mkdir(exist_ok=True)
        write_jsonl(file, [{"id": 1, "text": day}])
    definitions = definitions_of(
        pipeline_of(one=odd()),
        tmp_path / "{partition}.jsonl",
        root,
        report=True,
        partitions_def=days,
        layout=layout,
    )
    for day in days.get_partition_keys():
        job = definitions.resolve_job_def("docs_pipeline")
        assert job.execute_in_process(instance=instance, partition_key=day).success
    job = definitions.resolve_job_def("docs_pipeline_unpartitioned")
    assert job.execute_in_process(instance=instance).success
    nodes = read_report(root / "docs/report/report.html")["nodes"]
    assert sorted(node["name"] for node in nodes) == ["one, a/b", "one, c"]


def test_a_source_that_is_written_is_in_the_report(
    odd: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    def texts() -> Any:
        yield {"id": 1, "text": "a"}

    definitions = definitions_of(pipeline_of(one=odd()), texts, root, report=True)
    assert execute(definitions, instance).success
    nodes = read_report(root / "docs/report/report.html")["nodes"]
    assert [node["name"] for node in nodes] == ["texts", "one"]


def test_a_node_called_report_is_refused(odd: Any, records: Records, root: Path) -> None:
    with pytest.raises(PipelineDefinitionError, match="rename the node"):
        definitions_of(pipeline_of(report=odd()), records(1), root, report=True)

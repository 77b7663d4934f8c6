"""Operators with several results as assets: one step, an asset an output."""

from collections import Counter
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsIOManager,
    DataOpsTranslator,
    JsonlDataset,
    Pipeline,
    To,
    build_definitions,
    checks,
    combine,
    dataops_resources,
    pipeline,
)
from dagster_dataops import assets as parts
from tests.assets.helpers import (
    Records,
    checks_of,
    definitions_of,
    execute,
    log_of,
    metadata_of,
    numbered,
    read_jsonl,
    resource_at,
    result_of,
    spec_of,
    tags_of,
    write_jsonl,
)
from tests.faults.crashing import DyingAfter, in_child
from tests.nodes import commit
from tests.registries import OperatorRegistry

TRAIN, TEST = (dg.AssetKey(["docs", "split", name]) for name in ("train", "test"))
LAYOUTS = ["steps", "single_step"]


@pytest.fixture
def calls() -> Counter[int]:
    return Counter()


@pytest.fixture
def ppl(registry: OperatorRegistry, calls: Counter[int]) -> Pipeline:
    """A split; both parts are joined again, one of them marked."""

    @registry("data.text", outputs=("train", "test"), _concurrency_mode="single")
    def split(record: dict, every: int = 3, bad: int = -1):
        """Send each third record to the test part."""
        calls[record["id"]] += 1
        if record["id"] == bad:
            raise ValueError(bad)
        return To("test" if record["id"] % every == 0 else "train")

    @registry("data.text", _concurrency_mode="single")
    def mark(record: dict) -> None:
        record["marked"] = True

    with pipeline("docs") as ppl:
        ppl.split = split()
        ppl.add("marked", mark(), inputs=ppl.split.train)
        ppl.both = combine.concat([ppl.marked, ppl.split.test])
    return ppl


def _ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_output_is_an_asset_that_other_nodes_take(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance, layout: str
) -> None:
    definitions = definitions_of(ppl, records(10), root, layout=layout)
    result = execute(definitions, instance)
    assert result.success
    assert _ids(result_of(root, "docs", "split", "train")) == [1, 2, 4, 5, 7, 8]
    assert _ids(result_of(root, "docs", "split", "test")) == [0, 3, 6, 9]
    assert _ids(result_of(root, "docs", "both")) == [1, 2, 4, 5, 7, 8, 0, 3, 6, 9]
    for name, rows in (("train", 6), ("test", 4)):
        metadata = metadata_of(result, "docs", "split", name)
        assert metadata["dagster/row_count"] == rows
        assert metadata["rows_in"] == 10
        lineage = metadata["dagster/column_lineage"].deps_by_column
        assert set(lineage) == {"id", "text"}
    graph = definitions.resolve_asset_graph()
    assert graph.get(dg.AssetKey(["docs", "marked"])).parent_keys == {TRAIN}
    versions = {instance.get_latest_data_version_record(key) is not None for key in (TRAIN, TEST)}
    assert versions == {True}


def test_the_specs_of_all_outputs_have_kinds_code_version_and_output(
    ppl: Pipeline, records: Records, root: Path
) -> None:
    definitions = definitions_of(ppl, records(1), root)
    train, test = (spec_of(definitions, *key.path) for key in (TRAIN, TEST))
    assert train.kinds == test.kinds == {"python", "json"}
    assert train.code_version == test.code_version
    assert train.description == "Send each third record to the test part."
    assert train.metadata["dagster_dataops/output"] == "train"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_checks_of_a_node_are_checks_of_each_output(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance, layout: str
) -> None:
    given = {
        "split": [checks.row_count(min=5)],
        "split.test": [checks.no_nulls("id", blocking=True)],
    }
    definitions = definitions_of(ppl, records(10), root, layout=layout, checks=given)
    result = execute(definitions, instance)
    found = {(one.asset_key, one.check_name): one.passed for one in checks_of(result)}
    assert found[TRAIN, "row_count"]
    assert not found[TEST, "row_count"]
    assert found[TEST, "no_nulls_id"]
    assert (TRAIN, "no_nulls_id") not in found
    assert found[TRAIN, "failed_records"]
    assert found[TEST, "failed_records"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_blocking_check_of_one_output_stops_only_what_takes_it(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance, layout: str
) -> None:
    given = {"split.test": [checks.row_count(min=50, blocking=True)]}
    definitions = definitions_of(ppl, records(10), root, layout=layout, checks=given)
    result = execute(definitions, instance, raise_on_error=False)
    made = {event.asset_key for event in result.get_asset_materialization_events()}
    assert dg.AssetKey(["docs", "marked"]) in made
    assert dg.AssetKey(["docs", "both"]) not in made


@pytest.mark.parametrize("layout", LAYOUTS)
def test_selecting_one_output_reports_the_other_as_well(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance, layout: str
) -> None:
    definitions = definitions_of(ppl, records(10), root, layout=layout)
    result = execute(definitions, instance, only=[TRAIN.path])
    made = {event.asset_key for event in result.get_asset_materialization_events()}
    assert {TRAIN, TEST} <= made
    code_version = spec_of(definitions, *TEST.path).code_version
    assert tags_of(instance, *TEST.path)["dagster/code_version"] == code_version


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partitions_have_a_folder_of_every_output(
    ppl: Pipeline, tmp_path: Path, root: Path, instance: dg.DagsterInstance, layout: str
) -> None:
    for name, count in (("a", 3), ("b", 7)):
        write_jsonl(tmp_path / f"{name}.jsonl", list(numbered(count)))
    definitions = definitions_of(
        ppl,
        tmp_path / "{partition}.jsonl",
        root,
        layout=layout,
        partitions_def=dg.StaticPartitionsDefinition(["a", "b"]),
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    tags = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}
    assert execute(definitions, instance, tags=tags).success
    place = root / "docs" / "split"
    test = read_jsonl(place / "test" / "partitions" / "b" / "test_results.jsonl")
    assert _ids(test) == [0, 3, 6]
    assert (place / "partitions" / "b" / "split_results.jsonl.json").exists()
    assert instance.get_materialized_partitions(TRAIN) == {"a", "b"}
    assert execute(definitions, instance, only=[TEST.path], partition_key="a").success


@pytest.mark.slow
def test_failed_records_are_retried_in_every_output(
    ppl: Pipeline,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    calls: Counter[int],
) -> None:
    definitions = definitions_of(ppl, records(10), root)
    bad = {"ops": {"docs__split": {"config": {"params": {"bad": 4}}}}}
    execute(definitions, instance, bad)
    assert _ids(result_of(root, "docs", "split", "train")) == [1, 2, 5, 7, 8]
    assert (root / "docs" / "split" / "split_error.jsonl").exists()
    job = definitions.resolve_job_def("docs_retry_failed_records")
    assert job.execute_in_process(instance=instance).success
    assert _ids(result_of(root, "docs", "split", "train")) == [1, 2, 4, 5, 7, 8]
    assert _ids(result_of(root, "docs", "both")) == [1, 2, 4, 5, 7, 8, 0, 3, 6, 9]
    assert calls == {number: 1 + (number == 4) for number in range(10)}


def test_a_preview_shows_every_output_and_materializes_nothing(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(ppl, records(10), root)
    job = definitions.resolve_job_def("docs_preview")
    config = {"ops": {"preview_docs": {"config": {"limit": 4}}}}
    result = job.execute_in_process(config, instance=instance)
    assert not result.get_asset_materialization_events()
    place = root / "docs" / "split" / "train"
    assert _ids(read_jsonl(place / ".preview" / "train_results.jsonl")) == [1, 2]
    assert not (place / "train_results.jsonl").exists()
    config = {"ops": {"docs__split": {"config": {"limit": 4}}}}
    execute(definitions, instance, config, only=[TRAIN.path, TEST.path])
    assert not (place / "train_results.jsonl").exists()


@pytest.mark.slow
def test_a_run_killed_while_publishing_is_finished_by_the_next_one(
    ppl: Pipeline, records: Records, root: Path, stored: dg.DagsterInstance, calls: Counter[int]
) -> None:
    definitions = definitions_of(ppl, records(10), root)

    def killed() -> None:
        dying = DyingAfter(commit.write_durably, 1, before=False)
        pytest.MonkeyPatch().setattr(commit, "write_durably", dying)
        execute(definitions, stored)

    assert in_child(killed) == DyingAfter.STATUS
    result = execute(definitions, stored)
    assert result.success
    assert not calls  # those of the child are the only ones
    assert _ids(result_of(root, "docs", "both")) == [1, 2, 4, 5, 7, 8, 0, 3, 6, 9]
    assert any("finished publishing" in line for line in log_of(stored, result.run_id))


@pytest.mark.slow
def test_a_run_killed_before_all_outputs_were_reported_is_taken_over(
    ppl: Pipeline, records: Records, root: Path, stored: dg.DagsterInstance, calls: Counter[int]
) -> None:
    definitions = definitions_of(ppl, records(10), root)

    def killed() -> None:
        dying = DyingAfter(DataOpsIOManager.handle_output, 2, before=True)
        pytest.MonkeyPatch().setattr(DataOpsIOManager, "handle_output", dying)
        execute(definitions, stored)

    assert in_child(killed) == DyingAfter.STATUS
    assert stored.get_latest_materialization_event(TRAIN) is not None
    assert stored.get_latest_materialization_event(TEST) is None
    execute(definitions, stored)
    assert not calls
    assert stored.get_latest_materialization_event(TEST) is not None


def test_an_op_has_an_output_for_each_result(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    resources = dataops_resources(resource_at(root))
    job = parts.build_operator_job(ppl, source=records(10), resources=resources)
    result = job.execute_in_process(instance=instance)
    train: JsonlDataset = result.output_for_node("split", "train")
    assert train.rows == 6
    assert result.output_for_node("both").rows == 10


def test_a_translator_may_name_every_output(
    ppl: Pipeline, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    class Flat(DataOpsTranslator):
        def get_asset_spec(self, data: Any) -> dg.AssetSpec:
            spec = super().get_asset_spec(data)
            name = data.output or data.node.name
            return spec.replace_attributes(key=dg.AssetKey(["corpus", name]))

    definitions = build_definitions(
        ppl,
        source=records(10),
        resource=resource_at(root),
        dagster_dataops_translator=Flat(),
    )
    assert execute(definitions, instance).success
    assert _ids(result_of(root, "corpus", "test")) == [0, 3, 6, 9]
    assert (root / "corpus" / "split" / "split_results.jsonl.json").exists()
    assert execute(definitions, instance, only=[["corpus", "test"]]).success

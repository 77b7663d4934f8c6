"""Tests of declared checks as Dagster's: after their asset, alone, blocking, by partition."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsTranslator, assets, build_definitions, checks
from dagster_dataops.errors import PipelineDefinitionError
from tests.assets.helpers import (
    Records,
    check_alone,
    checks_of,
    definitions_of,
    execute,
    numbered,
    pipeline_of,
    write_jsonl,
)
from tests.registries import OperatorRegistry

FAILED = "failed_records"
LAYOUT = pytest.mark.parametrize("layout", ["steps", "single_step"])


@pytest.fixture
def keep(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="thread")
    def keep(record: dict, below: int = 8) -> Any:
        return record if record["id"] < below else []

    return keep


def declared_of(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {c.check_name: c for c in checks_of(result) if c.check_name != FAILED}


def test_all_checks_of_an_asset_are_one_step_after_its_own(
    keep: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    wanted = [
        checks.row_count(min=1, max=5),
        checks.max_dropped(0.5),
        checks.required_columns("id", "text"),
        checks.no_nulls("text", "tag", severity="WARN"),
        checks.unique("id"),
    ]
    ppl = pipeline_of(a=keep(), b=keep())
    result = execute(definitions_of(ppl, records(10), root, checks={"a": wanted}), instance)
    assert result.success
    steps = [event.step_key for event in result.get_step_success_events()]
    assert steps.index("docs__a") < steps.index("docs__a__checks")
    assert len(steps) == 3
    found = declared_of(result)
    assert {name: check.passed for name, check in found.items()} == {
        "row_count": False,
        "max_dropped": True,
        "required_columns": True,
        "no_nulls_text_tag": False,
        "unique_id": True,
    }
    nulls = found["no_nulls_text_tag"]
    assert nulls.severity is dg.AssetCheckSeverity.WARN
    assert found["row_count"].severity is dg.AssetCheckSeverity.ERROR
    assert nulls.description == "8 of 8 records lack a value in text or tag."
    table = nulls.metadata["dagster_dataops/examples"]
    assert isinstance(table, dg.TableMetadataValue)
    assert table.records[0].data == {
        "line": 1,
        "problem": "tag is missing",
        "value": '{"id":0,"text":"text 0"}',
    }
    assert nulls.target_materialization_data is not None
    assert nulls.target_materialization_data.run_id == result.run_id
    assert found["max_dropped"].metadata["dagster_dataops/dropped_share"].value == 0.2


@LAYOUT
@pytest.mark.parametrize(("least", "blocking"), [(9, True), (9, False), (8, True)])
def test_a_blocking_check_that_fails_stops_downstream_assets_in_the_same_run(
    layout: Any,
    least: int,
    blocking: bool,
    keep: Any,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    ppl = pipeline_of(a=keep(), b=keep(), c=keep())
    wanted = {"a": [checks.row_count(min=least, blocking=blocking), checks.unique("id")]}
    definitions = definitions_of(ppl, records(10), root, checks=wanted, layout=layout)
    result = execute(definitions, instance, raise_on_error=False)
    passes, stops = least == 8, blocking and least == 9
    assert result.success is not stops
    found = {check.check_name: check.passed for check in checks_of(result) if "a" in _path(check)}
    assert found["row_count"] is passes
    assert found.get("unique_id", stops)  # a step after a failed one does not run
    assert (root / "docs" / "a" / "a_results.jsonl").exists()
    assert (root / "docs" / "b").exists() is not stops
    assert (root / "docs" / "c").exists() is not stops


def _path(check: Any) -> list[str]:
    return check.asset_key.path


@pytest.mark.parametrize(
    ("layout", "step"), [("steps", "docs__a__checks"), ("single_step", "docs")]
)
def test_a_check_runs_alone_over_the_published_result(
    layout: Any,
    step: str,
    keep: Any,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    wanted = {"a": [checks.row_count(min=1), checks.unique("id", blocking=True)]}
    ppl = pipeline_of(a=keep(), b=keep())
    definitions = definitions_of(ppl, records(10), root, checks=wanted, layout=layout)
    with pytest.raises(Exception, match="Materialize the operator that writes it first"):
        check_alone(definitions, instance, ("a", "unique_id"))
    run = execute(definitions, instance).run_id
    result = check_alone(definitions, instance, ("a", "unique_id"))
    assert [event.step_key for event in result.get_step_success_events()] == [step]
    assert not result.get_asset_materialization_events()
    (check,) = checks_of(result)
    assert (check.check_name, check.passed) == ("unique_id", True)
    assert check.target_materialization_data is not None
    assert check.target_materialization_data.run_id == run


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "function"])
def test_the_source_is_checked_before_the_first_operator(
    kind: str, keep: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    def texts() -> Any:
        return numbered(10)

    source: Any = records(10) if kind == "file" else texts
    wanted = {"source": [checks.row_count(max=9, blocking=True)]}
    ppl = pipeline_of(a=keep())
    definitions = definitions_of(ppl, source, root, checks=wanted)
    job = definitions.resolve_job_def("docs_pipeline")  # the launch of a schedule
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    (check,) = checks_of(result)
    assert check.description == "10 records, more than 9."
    assert not (root / "docs" / "a").exists()


letters = dg.StaticPartitionsDefinition(["a", "b"])


class Partitioned(DataOpsTranslator):
    def get_asset_spec(self, data: assets.DataOpsTranslatorData) -> dg.AssetSpec:
        return super().get_asset_spec(data).replace_attributes(partitions_def=letters)


def test_a_check_reads_the_partition_of_its_run_or_all_partitions(
    keep: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(partitions_def=letters, io_manager_key="dataops_io")
    def raw(context: dg.AssetExecutionContext) -> list[dict[str, Any]]:
        return list(numbered({"a": 2, "b": 5}[context.partition_key]))

    wanted = {"a": [checks.row_count(max=3), checks.no_nulls("tag")]}
    definitions = definitions_of(
        pipeline_of(a=keep()),
        raw,
        root,
        others=[raw],
        dagster_dataops_translator=Partitioned(),
        checks=wanted,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    for key, text in (("a", "2 records."), ("b", "5 records, more than 3.")):
        result = execute(definitions, instance, partition_key=key)
        assert declared_of(result)["row_count"].description == text
    names = ("a", "row_count"), ("a", "no_nulls_tag")
    alone = declared_of(check_alone(definitions, instance, *names))
    assert alone["row_count"].description == (
        "1 of 2 partitions did not pass, first b: 5 records, more than 3."
    )
    table = alone["no_nulls_tag"].metadata["dagster_dataops/examples"]
    assert isinstance(table, dg.TableMetadataValue)
    places = [(row.data["partition"], row.data["line"]) for row in table.records]
    assert places == [("a", 1), ("a", 2), *(("b", line) for line in range(1, 6))]


def test_a_result_that_was_edited_is_checked_as_it_is(
    keep: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    wanted = {"a": [checks.row_count(min=5), checks.max_dropped(1)]}
    definitions = definitions_of(pipeline_of(a=keep()), records(10), root, checks=wanted)
    execute(definitions, instance)
    (root / "docs" / "a" / "a_results.jsonl").write_text('{"id": 1}\n')
    names = ("a", "row_count"), ("a", "max_dropped")
    found = declared_of(check_alone(definitions, instance, *names))
    assert found["row_count"].description == "1 record, fewer than 5."
    assert not found["max_dropped"].passed
    assert "edited" in str(found["max_dropped"].description)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"b": [checks.row_count(min=1)]}, "checks names 'b'; its nodes are a, source"),
        ({"a": [checks.row_count(min=1), checks.row_count(max=1)]}, "two checks 'row_count'"),
        ({"a": [checks.row_count(min=1, name=FAILED)]}, "two checks 'failed_records'"),
    ],
)
def test_checks_of_unknown_nodes_and_equal_names_are_refused(
    wanted: Any, message: str, keep: Any, records: Records
) -> None:
    with pytest.raises(PipelineDefinitionError, match=message):
        build_definitions(pipeline_of(a=keep()), source=records(1), checks=wanted)


def test_a_single_step_runs_only_the_checks_that_block_its_operators(
    keep: Any, records: Records
) -> None:
    wanted = {
        "a": [checks.row_count(min=1, blocking=True), checks.unique("id")],
        "b": [checks.row_count(min=1, blocking=True)],
    }
    ppl = pipeline_of(a=keep(), b=keep())
    built = build_definitions(ppl, source=records(1), layout="single_step", checks=wanted)
    (step,) = [each for each in built.assets or () if isinstance(each, dg.AssetsDefinition)]
    own = {(key.asset_key.path[-1], key.name) for key in step.check_keys}
    assert own == {("a", FAILED), ("b", FAILED), ("a", "row_count")}
    after = [key for each in built.asset_checks or () for key in each.check_keys]
    assert {(key.asset_key.path[-1], key.name) for key in after} == {
        ("a", "unique_id"),
        ("b", "row_count"),
    }


def test_a_preview_in_one_step_is_not_checked(
    keep: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    wanted = {"a": [checks.row_count(min=9, blocking=True)]}
    ppl = pipeline_of(a=keep(), b=keep())
    definitions = definitions_of(ppl, records(10), root, checks=wanted, layout="single_step")
    limits = {name: {"limit": 2} for name in "ab"}
    result = execute(definitions, instance, run_config={"ops": {"docs": {"config": limits}}})
    assert not checks_of(result)
    assert not (root / "docs" / "a" / "a_results.jsonl").exists()


def test_a_blocking_check_looks_at_every_partition_of_its_run(
    keep: Any, root: Path, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    for key, count in (("x", 1), ("y", 4), ("z", 9)):
        write_jsonl(tmp_path / "in" / f"{key}.jsonl", list(numbered(count)))
    definitions = definitions_of(
        pipeline_of(a=keep(), b=keep()),
        str(tmp_path / "in" / "{partition}.jsonl"),
        root,
        layout="single_step",
        partitions_def=dg.StaticPartitionsDefinition(["x", "y", "z"]),
        backfill_policy=dg.BackfillPolicy.single_run(),
        checks={"a": [checks.row_count(max=3, blocking=True)]},
    )
    both = {"dagster/asset_partition_range_start": "x", "dagster/asset_partition_range_end": "y"}
    job = definitions.resolve_job_def("docs_pipeline")
    result = job.execute_in_process(instance=instance, tags=both, raise_on_error=False)
    found = {check.check_name: check for check in checks_of(result)}
    text = "1 of 2 partitions did not pass, first y: 4 records, more than 3."
    assert found["row_count"].description == text
    assert not (root / "docs" / "b").exists()


def test_checks_of_a_source_that_is_defined_elsewhere_are_refused(keep: Any) -> None:
    wanted = {"source": [checks.row_count(min=1)]}
    with pytest.raises(PipelineDefinitionError, match="defined elsewhere"):
        build_definitions(pipeline_of(a=keep()), source=dg.AssetKey("raw"), checks=wanted)


def test_definitions_with_checks_can_be_loaded(keep: Any, records: Records) -> None:
    wanted = {"a": [checks.unique("id", blocking=True)], "source": [checks.row_count(min=1)]}
    definitions = build_definitions(pipeline_of(a=keep()), source=records(1), checks=wanted)
    dg.Definitions.validate_loadable(definitions)


def test_files_by_partition_are_checked_separately_or_together(
    keep: Any, root: Path, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    for key, count in (("a", 1), ("b", 4)):
        write_jsonl(tmp_path / "in" / f"{key}.jsonl", list(numbered(count)))
    wanted = {"source": [checks.row_count(max=3)], "a": [checks.row_count(max=3)]}
    definitions = definitions_of(
        pipeline_of(a=keep(), b=keep()),
        str(tmp_path / "in" / "{partition}.jsonl"),
        root,
        partitions_def=dg.StaticPartitionsDefinition(["b", "a", "c"]),
        unpartitioned=["b"],
        allow_missing_partitions=True,
        backfill_policy=dg.BackfillPolicy.single_run(),
        checks=wanted,
    )
    job = definitions.resolve_job_def("docs_pipeline")
    both = {"dagster/asset_partition_range_start": "b", "dagster/asset_partition_range_end": "a"}
    result = job.execute_in_process(instance=instance, tags=both)
    found = {(c.asset_key.path[-1], c.check_name): c for c in checks_of(result)}
    assert found["a", FAILED].description == "No record failed."
    text = "1 of 2 partitions did not pass, first b: 4 records, more than 3."
    assert found["a", "row_count"].description == text
    source = next(c for (name, _), c in found.items() if name not in {"a", "b"})
    assert source.description == text

    keys = [c.asset_check_key for c in (source, found["a", FAILED], found["a", "row_count"])]
    result = check_alone(definitions, instance, *keys)
    told = [c.description for c in checks_of(result)]
    assert sorted(str(text) for text in told) == sorted([text, text, "No record failed."])
    names = {job.name for job in definitions.jobs or ()}
    assert {"docs_retry_failed_records", "docs_retry_failed_records_unpartitioned"} <= names

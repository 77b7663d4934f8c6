"""Tests of the check ``failed_records``: its results, metadata and blocking."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import DataOpsResource, ErrorRateCheck, assets, build_definitions, pipeline
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError, ResultMissingError
from tests.assets.helpers import (
    Records,
    check_alone,
    checks_of,
    definitions_of,
    execute,
    log_of,
    pipeline_of,
    resource_at,
    result_of,
)
from tests.registries import OperatorRegistry

A = dg.AssetKey(["docs", "a"])


@pytest.fixture
def fail_tenth(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="thread")
    def fail_tenth(record: dict) -> None:
        if record["id"] % 10 == 0:
            raise ValueError(record["text"])

    return fail_tenth


@pytest.fixture
def whole(registry: OperatorRegistry) -> Any:
    @registry("data.text", rewrite_func="forward_batch_input")
    def whole(records: list[dict]) -> list[dict]:
        return records

    return whole


def test_by_default_a_failed_record_is_a_warning_and_stops_nothing(
    fail_tenth: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(a=fail_tenth(), b=fail_tenth()), records(20), root)
    result = execute(definitions, instance)
    a, b = checks_of(result)
    assert (a.asset_key, a.check_name, a.passed) == (A, "failed_records", False)
    assert a.severity is dg.AssetCheckSeverity.WARN
    assert a.description == "2 of 20 records failed, 10.0 %."
    told = {name.removeprefix("dagster_dataops/"): v.value for name, v in a.metadata.items()}
    assert [told[name] for name in ("failed_share", "rows_failed")] == [0.1, 2]
    assert told["error_path"] == str(root / "docs" / "a" / "a_error.jsonl")
    failures = a.metadata["dagster_dataops/failures"]
    assert isinstance(failures, dg.TableMetadataValue)
    assert [row.data["message"] for row in failures.records] == ["text 0", "text 10"]
    assert b.passed
    assert b.description == "No record failed."
    assert b.target_materialization_data is not None
    assert b.target_materialization_data.run_id == result.run_id


@pytest.mark.parametrize(
    ("rate", "passes"),
    [(0.1, True), (0.0999, False), (1, True), (0, False), (ErrorRateCheck(0.1), True)],
)
def test_it_passes_up_to_the_share_that_was_given(
    rate: Any,
    passes: bool,
    fail_tenth: Any,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    ppl = pipeline_of(a=fail_tenth())
    result = execute(definitions_of(ppl, records(20), root, max_error_rate=rate), instance)
    assert [check.passed for check in checks_of(result)] == [passes]


@pytest.mark.parametrize(
    ("rate", "description"),
    [
        (
            ErrorRateCheck(),
            "Passes if no record fails. Blocks if over 50.0 % fail.",
        ),
        (
            ErrorRateCheck(0.1, blocking=True),
            (
                "Passes if at most 10.0 % of the records fail. "
                "Blocks the assets downstream if it fails."
            ),
        ),
        (ErrorRateCheck(severity="WARN"), "Passes if no record fails."),
        (ErrorRateCheck(severity="ERROR"), "Passes if no record fails."),
    ],
)
def test_its_description_says_that_it_blocks_only_if_it_does(
    rate: ErrorRateCheck, description: str
) -> None:
    spec = rate.spec(A)
    assert spec.description == description
    assert spec.blocking == ("Blocks" in description)


@pytest.mark.parametrize("layout", ["steps", "single_step"])
@pytest.mark.parametrize("blocking", [True, False])
def test_a_blocking_check_publishes_the_result_and_stops_downstream_assets(
    blocking: bool,
    layout: str,
    fail_tenth: Any,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    rate = {"a": ErrorRateCheck(0.05, severity="ERROR", blocking=blocking)}
    with pipeline("docs") as ppl:
        ppl.a = fail_tenth()
        ppl.b = fail_tenth()
        ppl.c = fail_tenth()
        ppl.add("beside", fail_tenth(), inputs=[ppl.source])
    definitions = definitions_of(ppl, records(20), root, max_error_rate=rate, layout=layout)
    result = execute(definitions, instance, raise_on_error=False)
    assert (root / "docs" / "c").exists() is not blocking
    assert (root / "docs" / "beside").exists()
    assert checks_of(result)[0].severity is dg.AssetCheckSeverity.ERROR
    assert len(result_of(root, "docs", "a")) == 18
    assert result.success is not blocking
    assert (root / "docs" / "b").exists() is not blocking


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (None, []),
        (0.5, ["a", "b"]),
        ({"a": None}, ["b"]),
        ({"a": 0.5, "b": ErrorRateCheck(1)}, ["a", "b"]),
    ],
    ids=["none", "one for all", "one left out", "by node"],
)
def test_every_record_operator_has_a_check_by_default(
    given: Any, named: list[str], fail_tenth: Any, whole: Any, records: Records
) -> None:
    ppl = pipeline_of(a=fail_tenth(), b=fail_tenth(), c=whole())
    definitions = build_definitions(ppl, source=records(1), max_error_rate=given)
    keys = definitions.resolve_asset_graph().asset_check_keys
    assert sorted(key.asset_key.path[-1] for key in keys) == named


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_an_asset_can_be_materialized_without_its_check(
    layout: str, fail_tenth: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    rate, ppl = ErrorRateCheck(blocking=True), pipeline_of(a=fail_tenth(), b=fail_tenth())
    ours = definitions_of(ppl, records(10), root, max_error_rate=rate, layout=layout)
    selection = dg.AssetSelection.assets(A).without_checks()
    job = dg.Definitions(jobs=[dg.define_asset_job("bare", selection=selection)])
    definitions = dg.Definitions.merge(ours, job)
    result = definitions.resolve_job_def("bare").execute_in_process(instance=instance)
    made = {event.asset_key for event in result.get_asset_materialization_events()}
    assert A in made
    assert dg.AssetKey(["docs", "b"]) not in made
    assert checks_of(result) == []


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_the_check_alone_reads_the_published_result_and_calls_no_operator(
    layout: str, fail_tenth: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(a=fail_tenth(), b=fail_tenth())
    ours = definitions_of(ppl, records(20), root, layout=layout)
    with pytest.raises(ResultMissingError):
        check_alone(ours, instance, ("a", "failed_records"))
    execute(ours, instance)
    before = (root / "docs" / "a" / "a_results.jsonl").stat().st_mtime_ns
    result = check_alone(ours, instance, ("a", "failed_records"))
    assert result.get_asset_materialization_events() == []
    (check,) = checks_of(result)
    assert check.description == "2 of 20 records failed, 10.0 %."
    assert "dagster_dataops/failures" in check.metadata
    assert (root / "docs" / "a" / "a_results.jsonl").stat().st_mtime_ns == before


def test_an_empty_input_passes(
    fail_tenth: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    (check,) = checks_of(
        execute(definitions_of(pipeline_of(a=fail_tenth()), records(0), root), instance)
    )
    assert check.passed


def test_impossible_rates_are_refused(fail_tenth: Any, records: Records) -> None:
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(ConfigurationError, match=r"must be in \[0, 1\]"):
            ErrorRateCheck(rate)
    with pytest.raises(ConfigurationError, match="WARN or ERROR"):
        ErrorRateCheck(0.1, severity="FATAL")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="ERROR for a check that blocks"):
        ErrorRateCheck(0.1, severity="WARN", blocking=True)
    with pytest.raises(PipelineDefinitionError, match="max_error_rate names 'b'; .* are a"):
        build_definitions(pipeline_of(a=fail_tenth()), source=records(1), max_error_rate={"b": 0.1})


@pytest.mark.parametrize("blocking", [True, False])
def test_in_an_op_a_check_that_does_not_pass_is_a_warning_and_one_that_blocks_fails_it(
    blocking: bool, fail_tenth: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    rate = ErrorRateCheck(0.05, blocking=blocking)
    ppl = pipeline_of(a=fail_tenth(), b=fail_tenth())
    planned = assets.plan_pipeline(ppl, source=records(20), max_error_rate=rate)

    @dg.op(out={})
    def nightly(context: dg.OpExecutionContext, dataops: DataOpsResource) -> Any:
        yield from dataops.run(context, planned)

    @dg.job(resource_defs={"dataops": resource_at(root)})
    def night() -> None:
        nightly()

    result = night.execute_in_process(instance=instance, raise_on_error=False)
    warnings = log_of(instance, result.run_id)
    told = "check failed_records failed: 2 of 20 records failed, 10.0 %."
    assert any(warning.startswith(told) for warning in warnings)
    assert result.success is not blocking
    assert (root / "docs" / "b").exists() is not blocking

"""Tests of get_asset_check_spec: names, severity and blocking of checks, in every form."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsTranslator,
    ErrorRateCheck,
    Operator,
    To,
    assets,
    build_definitions,
    checks,
)
from dagster_dataops.errors import PipelineDefinitionError
from tests.assets.helpers import (
    Records,
    check_alone,
    checks_of,
    definitions_of,
    execute,
    pipeline_of,
    write_jsonl,
)
from tests.docstring_examples import example_in
from tests.registries import OperatorRegistry

LAYOUTS = pytest.mark.parametrize("layout", ["steps", "single_step"])
SEVERITY = "dagster_dataops/severity"


@pytest.fixture
def picky(registry: OperatorRegistry) -> Callable[[], Operator]:
    """An operator that fails on one record, and reads a column that another one lacks."""

    @registry("data.text", _concurrency_mode="single", reads=("text",))
    def picky(record: dict) -> dict:
        if record.get("text") == "b":
            raise ValueError("b")
        return record

    return picky


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = [{"text": "a"}, {"text": "b"}, {"text": "c"}, {"id": 1}]
    return write_jsonl(tmp_path / "texts.jsonl", rows)


def translator_by(change: Callable[[assets.DataOpsCheckData], Any]) -> DataOpsTranslator:
    return type("Mine", (DataOpsTranslator,), {"get_asset_check_spec": lambda _, d: change(d)})()


def renamed(data: assets.DataOpsCheckData, **changed: Any) -> dg.AssetCheckSpec:
    spec = data.spec
    given = {"description": spec.description, "metadata": spec.metadata, "blocking": spec.blocking}
    return dg.AssetCheckSpec(f"my_{spec.name}", asset=spec.asset_key, **{**given, **changed})


def results(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], tuple[bool, str, bool]]:
    return {
        (one.asset_key.path[-1], one.check_name): (one.passed, one.severity.value, one.blocking)
        for one in checks_of(result)
    }


@LAYOUTS
def test_results_have_the_names_of_the_translator(
    layout: Any, picky: Any, source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(
        pipeline_of(one=picky(), two=picky()),
        source,
        root,
        layout=layout,
        checks={
            "one": [checks.row_count(min=9, severity="WARN"), checks.row_count(name="b", max=9)],
            "source": [checks.required_columns("text", severity="WARN")],
        },
        dagster_dataops_translator=translator_by(renamed),
    )
    assert results(execute(definitions, instance)) == {
        ("one", "my_failed_records"): (False, "WARN", True),
        ("one", "my_missing_columns"): (False, "WARN", False),
        ("two", "my_missing_columns"): (False, "WARN", False),
        ("one", "my_row_count"): (False, "WARN", False),
        ("one", "my_b"): (True, "ERROR", False),
        ("two", "my_failed_records"): (True, "WARN", True),
        ("texts", "my_required_columns"): (False, "WARN", False),
    }


@LAYOUTS
def test_severity_and_blocking_of_the_translator_stop_assets_downstream(
    layout: Any, picky: Any, source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    strict = translator_by(lambda d: renamed(d, blocking=True, metadata={SEVERITY: "ERROR"}))
    definitions = definitions_of(
        pipeline_of(one=picky(), two=picky()),
        source,
        root,
        layout=layout,
        dagster_dataops_translator=strict,
    )
    job = definitions.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    assert not result.success
    assert results(result) == {
        ("one", "my_failed_records"): (False, "ERROR", True),
        ("one", "my_missing_columns"): (False, "ERROR", True),
    }


@pytest.mark.slow
@LAYOUTS
def test_a_declared_check_blocks_if_the_translator_says_so(
    layout: Any, picky: Any, source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    blocking = translator_by(lambda d: renamed(d, blocking=True) if d.declared else d.spec)
    definitions = definitions_of(
        pipeline_of(one=picky(), two=picky()),
        source,
        root,
        layout=layout,
        checks={"one": [checks.row_count(min=9)]},
        dagster_dataops_translator=blocking,
    )
    job = definitions.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    assert results(result)["one", "my_row_count"] == (False, "ERROR", True)
    made = {event.asset_key.path[-1] for event in result.get_asset_materialization_events()}
    assert "one" in made
    assert "two" not in made


def test_the_check_can_run_alone_under_its_new_name(
    picky: Any, source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(
        pipeline_of(one=picky()), source, root, dagster_dataops_translator=translator_by(renamed)
    )
    execute(definitions, instance)
    result = check_alone(definitions, instance, ("one", "my_failed_records"))
    assert results(result) == {("one", "my_failed_records"): (False, "WARN", True)}


def test_the_translator_sees_every_check_with_its_node_and_output(
    registry: OperatorRegistry, records: Records
) -> None:
    @registry("data.text", outputs=("left", "right"), _concurrency_mode="single")
    def split(record: dict) -> Any:
        return To("left")

    seen: list[tuple[Any, ...]] = []

    def see(data: assets.DataOpsCheckData) -> dg.AssetCheckSpec:
        node = None if data.node is None else data.node.name
        severity = data.spec.metadata.get(SEVERITY)
        seen.append((data.pipeline, node, data.output, data.spec.name, data.declared, severity))
        return data.spec

    build_definitions(
        pipeline_of(cut=split()),
        source=records(1),
        checks={"cut.left": [checks.row_count(min=1)], "source": [checks.no_nulls("text")]},
        dagster_dataops_translator=translator_by(see),
    )
    assert set(seen) == {
        ("docs", "cut", "left", "failed_records", False, None),
        ("docs", "cut", "right", "failed_records", False, None),
        ("docs", "cut", "left", "row_count", True, "ERROR"),
        ("docs", None, "", "no_nulls_text", True, "ERROR"),
    }


WRONG = {
    "None": (lambda d: None, "returned None; return the spec of the check"),
    "a name": (lambda d: d.spec.name, "; return the spec of the check, such as super()"),
    "another asset": (
        lambda d: dg.AssetCheckSpec(d.spec.name, asset="other"),
        "returned a check of other; give it asset=data.spec.asset_key",
    ),
    "one name for all": (
        lambda d: dg.AssetCheckSpec("same", asset=d.spec.asset_key),
        "returned this name twice",
    ),
    "a name with a space": (
        lambda d: dg.AssetCheckSpec("a b", asset=d.spec.asset_key),
        "returned the name 'a b'; a name is made of ASCII letters, digits and underscores",
    ),
    "an empty name": (lambda d: dg.AssetCheckSpec("", asset=d.spec.asset_key), "the name ''"),
    "an unknown severity": (
        lambda d: d.spec.with_metadata({SEVERITY: "FATAL"}),
        "severity FATAL; give 'dagster_dataops/severity' in its metadata, WARN or ERROR",
    ),
    "a warning that blocks": (
        lambda d: renamed(d, blocking=True, metadata={SEVERITY: "WARN"}),
        "severity WARN; give 'dagster_dataops/severity' in its metadata, ERROR for a check that",
    ),
}


@LAYOUTS
@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_a_check_is_refused_when_definitions_load(
    case: str, layout: Any, picky: Any, source: Path
) -> None:
    change, named = WRONG[case]
    with pytest.raises(PipelineDefinitionError) as caught:
        build_definitions(
            pipeline_of(one=picky()),
            source=source,
            layout=layout,
            checks={"one": [checks.row_count(min=9)]},
            dagster_dataops_translator=translator_by(change),
        )
    assert named in str(caught.value)
    assert "get_asset_check_spec of Mine for check '" in str(caught.value)
    assert "of docs/one" in str(caught.value)


def test_a_check_that_only_warns_does_not_block_without_a_severity(
    picky: Any, source: Path
) -> None:
    blocking = translator_by(lambda d: dg.AssetCheckSpec(d.spec.name, asset=d.spec.asset_key))
    keywords = {"source": source, "max_error_rate": ErrorRateCheck(severity="WARN")}
    build_definitions(pipeline_of(one=picky()), dagster_dataops_translator=blocking, **keywords)
    blocking = translator_by(lambda d: renamed(d, blocking=True, metadata={}))
    with pytest.raises(PipelineDefinitionError, match="severity WARN"):
        build_definitions(pipeline_of(one=picky()), dagster_dataops_translator=blocking, **keywords)


@pytest.mark.parametrize(
    "value", ["ERROR", dg.AssetCheckSeverity.ERROR, dg.MetadataValue.text("ERROR")]
)
def test_a_severity_may_be_a_text_or_that_of_dagster(
    value: Any, picky: Any, source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    always = translator_by(lambda d: d.spec.with_metadata({SEVERITY: value}))
    definitions = definitions_of(
        pipeline_of(one=picky()),
        source,
        root,
        dagster_dataops_translator=always,
        max_error_rate=ErrorRateCheck(severity="WARN"),
    )
    assert results(execute(definitions, instance))["one", "failed_records"] == (
        False,
        "ERROR",
        False,
    )


def test_checks_keep_their_partitions_conditions_and_dependencies(
    picky: Any, tmp_path: Path
) -> None:
    condition = dg.AutomationCondition.eager()
    changed = translator_by(
        lambda d: renamed(d, additional_deps=["other"], automation_condition=condition)
    )
    definitions = build_definitions(
        pipeline_of(one=picky()),
        source=str(tmp_path / "{partition}.jsonl"),
        partitions_def=dg.StaticPartitionsDefinition(["a"]),
        dagster_dataops_translator=changed,
    )
    spec, _ = definitions.resolve_assets_def(["docs", "one"]).check_specs
    assert spec.partitions_def == dg.StaticPartitionsDefinition(["a"])
    assert spec.automation_condition == condition
    assert [dep.asset_key.path for dep in spec.additional_deps] == [["other"]]


def test_the_example_of_get_asset_check_spec_runs(
    picky: Any, source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    names = {"DataOpsTranslator": DataOpsTranslator, "dg": dg}
    checked = example_in(DataOpsTranslator.get_asset_check_spec, **names)["Checked"]()
    definitions = definitions_of(
        pipeline_of(one=picky()), source, root, dagster_dataops_translator=checked
    )
    job = definitions.resolve_implicit_global_asset_job_def()
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    assert results(result)["one", "quality_gate"] == (False, "ERROR", True)

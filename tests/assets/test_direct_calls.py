"""Tests of assets that a unit test calls in Python, with a context and no run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsResource,
    DataOpsTranslator,
    JsonlDataset,
    Pipeline,
    assets,
    checks,
    dataops_assets,
)
from dagster_dataops.errors import ConfigurationError
from tests.assets.helpers import pipeline_of, resource_at, write_jsonl
from tests.registries import OperatorRegistry

KEYS = ["a", "b"]
PARTS = dg.StaticPartitionsDefinition(KEYS)
RANGE = dg.PartitionKeyRange("a", "b")
SINGLE_RUN = {"partitions_def": PARTS, "backfill_policy": dg.BackfillPolicy.single_run()}


@pytest.fixture
def ppl(registry: OperatorRegistry) -> Pipeline:
    @registry("data.text", _concurrency_mode="single")
    def add(record: dict, suffix: str = "!") -> None:
        record["text"] += suffix

    return pipeline_of(first=add(), second=add(suffix="?"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "texts.jsonl", [{"text": "x"}])


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    for key in KEYS:
        write_jsonl(tmp_path / f"{key}.jsonl", [{"text": key}])
    return str(tmp_path / "{partition}.jsonl")


def decorated(ppl: Pipeline, source: Any, **options: Any) -> list[Any]:
    @dataops_assets(ppl, source=source, **options)
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        yield from dataops.run(context)

    return [docs]


def per_node(ppl: Pipeline, source: Any, **options: Any) -> list[Any]:
    return assets.build_operator_assets(ppl, source=source, **options)[1:]


def single_step(ppl: Pipeline, source: Any, **options: Any) -> list[Any]:
    return assets.build_operator_assets(ppl, source=source, layout="single_step", **options)[1:]


FORMS = pytest.mark.parametrize("form", [decorated, per_node, single_step])


def texts(events: Any) -> dict[str, Any]:
    """Return the texts of each result; of several partitions by key."""
    found = {}
    for event in list(events):
        if isinstance(event, dg.MaterializeResult):
            value = event.value
            parts = value if isinstance(value, dict) else {"": value}
            read = {key: [record["text"] for record in part] for key, part in parts.items()}
            found[event.asset_key.path[-1]] = read if isinstance(value, dict) else read[""]
    return found


@FORMS
def test_a_step_runs_with_the_resource_as_an_argument_or_in_the_context(
    form: Any, ppl: Pipeline, source: Path, root: Path
) -> None:
    first = form(ppl, source)[0]
    events = list(first(dg.build_asset_context(), dataops=resource_at(root)))
    found = texts(events)
    assert found["first"] == ["x!"]
    assert found.get("second") in (None, ["x!?"])
    result, check, *_ = events
    assert result.metadata["dagster_dataops/rows_in"] == 1
    assert result.data_version.value.startswith("xxh3:")
    assert (check.check_name, check.passed) == ("failed_records", True)
    # Dagster wants `with` for a resource that has dependencies.
    with dg.build_asset_context(resources={"dataops": resource_at(root)}) as context:
        assert texts(first(context))["first"] == ["x!"]


@FORMS
def test_a_step_makes_the_partition_of_the_context(
    form: Any, ppl: Pipeline, pattern: str, root: Path
) -> None:
    first = form(ppl, pattern, partitions_def=PARTS)[0]
    context = dg.build_asset_context(partition_key="b")
    assert texts(first(context, dataops=resource_at(root)))["first"] == ["b!"]
    with pytest.raises(dg.Failure, match="launch it with a partition"):
        list(first(dg.build_asset_context(), dataops=resource_at(root)))


@FORMS
def test_a_step_makes_a_range_of_partitions(
    form: Any, ppl: Pipeline, pattern: str, root: Path
) -> None:
    first = form(ppl, pattern, **SINGLE_RUN)[0]
    context = dg.build_asset_context(partition_key_range=RANGE)
    found = texts(first(context, dataops=resource_at(root)))
    assert found["first"] == {"a": ["a!"], "b": ["b!"]}


def test_an_upstream_result_is_an_argument(ppl: Pipeline, source: Path, root: Path) -> None:
    second = per_node(ppl, source)[1]
    given = [JsonlDataset.of_file(source), [{"text": "x"}]]
    for value in given:
        context = dg.build_asset_context()
        found = second(context, input_first=value, dataops=resource_at(root))
        assert texts(found)["second"] == ["x?"]


def test_upstream_partitions_are_an_argument_by_key(
    ppl: Pipeline, pattern: str, root: Path
) -> None:
    second = per_node(ppl, pattern, **SINGLE_RUN)[1]
    parts = {key: JsonlDataset.of_file(pattern.format(partition=key)) for key in KEYS}
    context = dg.build_asset_context(partition_key_range=RANGE)
    found = texts(second(context, input_first=parts, dataops=resource_at(root)))
    assert found["second"] == {"a": ["a?"], "b": ["b?"]}


def test_an_unpartitioned_step_takes_all_partitions(
    ppl: Pipeline, pattern: str, root: Path
) -> None:
    options = {"partitions_def": PARTS, "unpartitioned": ["second"]}
    second = per_node(ppl, pattern, **options)[1]
    parts = {key: JsonlDataset.of_file(pattern.format(partition=key)) for key in KEYS}
    found = second(dg.build_asset_context(), input_first=parts, dataops=resource_at(root))
    assert texts(found)["second"] == ["a?", "b?"]


def test_a_limit_in_the_config_makes_a_preview(ppl: Pipeline, source: Path, root: Path) -> None:
    first = per_node(ppl, source)[0]
    context = dg.build_asset_context(asset_config={"limit": 1})
    assert list(first(context, dataops=resource_at(root))) == []


def test_a_source_function_is_called_again_with_the_same_context(ppl: Pipeline, root: Path) -> None:
    calls: list[int] = []

    def made() -> Iterator[dict[str, Any]]:
        calls.append(1)
        yield {"text": "x"}

    asset, *_ = assets.build_operator_assets(ppl, source=made)
    assert isinstance(asset, dg.AssetsDefinition)
    context = dg.build_asset_context()
    for _ in range(2):
        assert texts(asset(context, dataops=resource_at(root)))["made"] == ["x"]
    assert len(calls) == 2


def test_tags_of_the_context_are_those_of_the_run(ppl: Pipeline, source: Path, root: Path) -> None:
    first = per_node(ppl, source)[0]
    list(first(dg.build_asset_context(), dataops=resource_at(root)))
    tags = {"dagster_dataops/refresh": "true"}
    (result, *_) = first(dg.build_asset_context(run_tags=tags), dataops=resource_at(root))
    assert result.metadata["dagster_dataops/rows_resumed"] == 1


def test_execute_is_called_with_its_resources(ppl: Pipeline, source: Path, root: Path) -> None:
    told: list[str] = []

    class Telling(DataOpsTranslator):
        def execute(self, context, dataops, slack):
            yield from dataops.run(context)
            slack.append("done")

    first = per_node(ppl, source, dagster_dataops_translator=Telling())[0]
    list(first(dg.build_asset_context(), dataops=resource_at(root), slack=told))
    assert told == ["done"]


def test_a_resource_key_names_the_argument(ppl: Pipeline, source: Path, root: Path) -> None:
    for form in (per_node, single_step):
        first = form(ppl, source, resource_key="scratch")[0]
        found = texts(first(dg.build_asset_context(), scratch=resource_at(root)))
        assert found["first"] == ["x!"]


def test_checks_and_ops_are_called_too(ppl: Pipeline, source: Path, root: Path) -> None:
    list(single_step(ppl, source)[0](dg.build_asset_context(), dataops=resource_at(root)))
    given = {"first": [checks.row_count(min=1)]}
    (check,) = assets.build_operator_checks(ppl, source=source, checks=given)
    (found,) = check(dg.build_asset_check_context(), dataops=resource_at(root))
    assert found.passed
    op = assets.build_operator_ops(ppl)["first"]
    dataset = JsonlDataset.of_file(source)
    (output,) = op(dg.build_op_context(), input_source=dataset, dataops=resource_at(root))
    assert [record["text"] for record in output.value] == ["x!"]


def test_a_step_with_other_specs_takes_the_resource_from_the_context(
    ppl: Pipeline, source: Path, root: Path
) -> None:
    first, *_ = dg.map_asset_specs(
        lambda spec: spec.replace_attributes(owners=["team:data"]), per_node(ppl, source)
    )
    with dg.build_asset_context(resources={"dataops": resource_at(root)}) as context:
        assert texts(first(context))["first"] == ["x!"]
    with pytest.raises(ConfigurationError, match="give the resource by its key"):
        list(first(dg.build_asset_context()))


def test_a_run_needs_the_resource_only_through_the_io_manager(ppl: Pipeline, source: Path) -> None:
    for step in per_node(ppl, source):
        assert step.op.required_resource_keys == set()
        assert {one.io_manager_key for one in step.op.output_defs} >= {"dataops_io"}


def test_another_io_manager_in_its_place_is_named(ppl: Pipeline, source: Path, root: Path) -> None:
    steps = assets.build_operator_assets(ppl, source=source)
    resources = {"dataops": resource_at(root), "dataops_io": dg.InMemoryIOManager()}
    with pytest.raises(ConfigurationError, match="dataops_io.*InMemoryIOManager.*DataOpsIOManager"):
        dg.materialize(steps, resources=resources)

"""Tests of the partitions of checks: the last result of each partition is kept."""

import warnings
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import checks, data
from tests.assets.helpers import check_alone, definitions_of, pipeline_of
from tests.registries import OperatorRegistry

KEYS = ["p1", "p2", "p3"]
STATIC = dg.StaticPartitionsDefinition(KEYS)
ONE_BY_ONE = [None, dg.BackfillPolicy.multi_run(1)]
SEVERAL = [dg.BackfillPolicy.single_run(), dg.BackfillPolicy.multi_run(5)]
HALF = dg.AssetKey(["docs", "half"])


@pytest.fixture
def half(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="single")
    def half(record: dict) -> dict:
        if record["bad"]:
            raise ValueError("bad")
        return record

    return half


def source(key: str) -> list[dict[str, Any]]:
    """Give 10 records, of which 3 fail in p1, and whose column is empty in p1."""
    first = key.startswith("p1")
    return [{"bad": first and number < 3, "n": None if first else 1} for number in range(10)]


def built(half: Any, root: Any, **options: Any) -> dg.Definitions:
    declared = {"half": [checks.no_nulls("n")], "source": [checks.no_nulls("n")]}
    options = {"partitions_def": STATIC, "checks": declared, **options}
    return definitions_of(pipeline_of(half=half()), source, root, **options)


def specs_of(definitions: dg.Definitions) -> dict[tuple[str, str], Any]:
    graph = definitions.resolve_asset_graph()
    found = [spec for one in graph.assets_defs for spec in one.check_specs]
    return {(spec.asset_key.path[-1], spec.name): spec.partitions_def for spec in found}


def statuses(instance: dg.DagsterInstance, name: str, keys: list[str]) -> list[str]:
    """Return the status of a check in each partition, as the page of the asset shows it."""
    found = instance.event_log_storage.get_asset_check_partition_info(
        [dg.AssetCheckKey(HALF, name)]
    )
    by_key = {one.partition_key: one.latest_execution_status.value for one in found}
    return [by_key.get(key, "none") for key in keys]


@pytest.mark.parametrize("layout", ["steps", "single_step"])
@pytest.mark.parametrize("policy", ONE_BY_ONE)
def test_checks_have_the_partitions_of_runs_of_one_partition(
    policy: Any, layout: str, half: Any, root: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        definitions = built(half, root, backfill_policy=policy, layout=layout)
    found = specs_of(definitions)
    assert set(found) == {
        ("half", "failed_records"),
        ("half", "no_nulls_n"),
        ("source", "no_nulls_n"),
    }
    assert set(map(id, found.values())) == {id(STATIC)}


@pytest.mark.parametrize("policy", SEVERAL)
def test_checks_in_runs_of_several_partitions_have_none(policy: Any, half: Any, root: Any) -> None:
    found = specs_of(built(half, root, backfill_policy=policy))
    assert set(found.values()) == {None}


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_a_failure_of_a_partition_is_not_hidden_by_the_next(
    layout: str, half: Any, root: Any, instance: dg.DagsterInstance
) -> None:
    definitions = built(half, root, layout=layout)
    job = definitions.resolve_job_def("docs_pipeline")
    for key in KEYS[:2]:
        job.execute_in_process(instance=instance, partition_key=key, raise_on_error=False)
    for name in ("failed_records", "no_nulls_n"):
        assert statuses(instance, name, KEYS) == ["FAILED", "SUCCEEDED", "none"]


@pytest.mark.parametrize(
    ("partitions", "keys"),
    [
        (dg.DynamicPartitionsDefinition(name="files"), ["p1 a", "p2"]),
        (dg.DailyPartitionsDefinition("2024-01-01"), ["2024-01-01", "2024-01-02"]),
        (
            dg.MultiPartitionsDefinition(
                {"a": dg.StaticPartitionsDefinition(["p1", "p2"]), "b": STATIC}
            ),
            ["p1|p3", "p2|p1"],
        ),
    ],
)
def test_all_kinds_of_partitions_keep_the_results_of_their_checks(
    partitions: Any, keys: list[str], half: Any, root: Any, instance: dg.DagsterInstance
) -> None:
    definitions = built(half, root, partitions_def=partitions)
    if isinstance(partitions, dg.DynamicPartitionsDefinition):
        instance.add_dynamic_partitions("files", keys)
    job = definitions.resolve_job_def("docs_pipeline")
    for key in keys:
        job.execute_in_process(instance=instance, partition_key=key, raise_on_error=False)
    first = "FAILED" if keys[0].startswith("p1") else "SUCCEEDED"
    for name in ("failed_records", "no_nulls_n"):
        assert statuses(instance, name, keys) == [first, "SUCCEEDED"]


def test_the_checks_of_files_of_the_source_have_no_partitions(
    half: Any, root: Any, tmp_path: Any
) -> None:
    declared = {"source": [checks.row_count(min=1)], "half": [checks.row_count(min=1)]}
    ppl = pipeline_of(half=half())
    pattern = f"{tmp_path}/{{partition}}.jsonl"
    found = specs_of(definitions_of(ppl, pattern, root, partitions_def=STATIC, checks=declared))
    (of_files,) = (found[key] for key in found if key[0] != "half")
    assert of_files is None
    assert found["half", "row_count"] is STATIC


def test_unpartitioned_nodes_have_checks_without_partitions(half: Any, root: Any) -> None:
    ppl = pipeline_of(half=half(), whole=half())
    definitions = definitions_of(ppl, source, root, partitions_def=STATIC, unpartitioned=["whole"])
    found = specs_of(definitions)
    assert found["whole", "failed_records"] is None
    assert found["half", "failed_records"] is STATIC


def test_a_run_of_several_partitions_names_those_that_failed(
    half: Any, root: Any, instance: dg.DagsterInstance
) -> None:
    partitions = dg.StaticPartitionsDefinition(["p1", "p1b", "p2"])
    definitions = built(
        half, root, partitions_def=partitions, backfill_policy=dg.BackfillPolicy.single_run()
    )
    tags = {"dagster/asset_partition_range_start": "p1", "dagster/asset_partition_range_end": "p2"}
    job = definitions.resolve_implicit_global_asset_job_def()
    ran = job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)
    texts = {
        one.check_name: one.description
        for one in ran.get_asset_check_evaluations()
        if one.asset_key == HALF
    }
    assert texts["failed_records"] == (
        "6 of 30 records failed, 20.0 %. Partitions with failed records: p1, p1b."
    )
    assert "2 of 3 partitions did not pass (p1, p1b), first p1:" in (texts["no_nulls_n"] or "")


def some_lack_it(key: str) -> list[dict[str, Any]]:
    """Give 3 records, of which 2 lack the text in partitions that begin with p1."""
    first = key.startswith("p1")
    return [{"text": "a"}, *({"n": 1} if first else {"text": "b"} for _ in range(2))]


def test_missing_columns_are_kept_for_each_partition(
    root: Any, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(half=data.text.Normalize(input_key="text"))
    definitions = definitions_of(ppl, some_lack_it, root, partitions_def=STATIC)
    job = definitions.resolve_job_def("docs_pipeline")
    for key in KEYS[:2]:
        job.execute_in_process(instance=instance, partition_key=key, raise_on_error=False)
    assert statuses(instance, "missing_columns", KEYS) == ["FAILED", "SUCCEEDED", "none"]


def test_a_run_of_several_partitions_names_those_that_lack_columns(
    root: Any, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(half=data.text.Normalize(input_key="text"))
    policy = dg.BackfillPolicy.single_run()
    definitions = definitions_of(
        ppl, some_lack_it, root, partitions_def=STATIC, backfill_policy=policy
    )
    tags = {"dagster/asset_partition_range_start": "p1", "dagster/asset_partition_range_end": "p3"}
    job = definitions.resolve_implicit_global_asset_job_def()
    ran = job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)
    (text,) = (
        one.description
        for one in ran.get_asset_check_evaluations()
        if one.check_name == "missing_columns"
    )
    assert text == ("2 of 9 records lack the column 'text'. Partitions with missing columns: p1.")


@pytest.mark.slow
def test_checks_alone_run_in_a_partition(
    half: Any, root: Any, instance: dg.DagsterInstance
) -> None:
    definitions = built(half, root)
    job = definitions.resolve_job_def("docs_pipeline")
    for key in KEYS[:2]:
        job.execute_in_process(instance=instance, partition_key=key, raise_on_error=False)
    names = ("half", "failed_records"), ("half", "no_nulls_n")
    keywords = {"tags": {"dagster/partition": "p1"}, "raise_on_error": False}
    ran = check_alone(definitions, instance, *names, **keywords)
    assert {one.partition for one in ran.get_asset_check_evaluations()} == {"p1"}
    assert statuses(instance, "no_nulls_n", KEYS) == ["FAILED", "SUCCEEDED", "none"]

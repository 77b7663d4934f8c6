"""Several partitions in one step."""

from collections import Counter
from pathlib import Path

import dagster as dg
import pytest

from dagster_dataops.errors import (
    PartitionsFailedError,
)
from tests.assets.helpers import (
    definitions_of,
    execute,
    pipeline_of,
)
from tests.assets.inputs.tagging import (
    LETTERS,
    SINGLE_RUN,
    Tagging,
    ids,
    of_range,
    part_of,
    partitions_of,
)


def test_one_run_of_several_partitions_reports_each_of_them(
    static: dg.Definitions, tagging: Tagging, root: Path, instance: dg.DagsterInstance
) -> None:
    result = execute(static, instance, tags=of_range("c", "a"))
    told = partitions_of(result, "docs", "second")
    assert {key: one["rows_in"] for key, one in told.items()} == {"c": 2, "a": 2}
    assert {one["path"].split("/")[-2] for one in told.values()} == {"c", "a"}
    assert [ids(part_of(root, "second", key)) for key in "ca"] == [["c0", "c1"], ["a0", "a1"]]
    assert tagging.calls == Counter(dict.fromkeys(["a0", "a1", "c0", "c1"], 2))
    made = instance.get_materialized_partitions(dg.AssetKey(["docs", "second"]))
    assert made == {"a", "c"}
    assert not list(root.rglob("*untold*"))


def test_one_failing_partition_fails_the_step_after_the_others_are_made(
    static: dg.Definitions, tagging: Tagging, root: Path, instance: dg.DagsterInstance
) -> None:
    tagging.failing = {"a1"}
    with pytest.raises(PartitionsFailedError, match=r"1 of 3 partitions failed: a \(RecordError"):
        execute(static, instance, tags=of_range("c", "b"))
    first = dg.AssetKey(["docs", "first"])
    assert instance.get_materialized_partitions(first) == {"b", "c"}
    assert ids(part_of(root, "first", "b")) == ["b0", "b1"]

    tagging.failing, before = set(), tagging.calls.copy()
    execute(static, instance, partition_key="a")
    assert ids(part_of(root, "second", "a")) == ["a0", "a1"]
    assert tagging.calls["a0"] == before["a0"] + 1  # by the second node alone


def test_a_failed_partition_keeps_its_version_apart_from_the_others(
    static: dg.Definitions, tagging: Tagging, instance: dg.DagsterInstance
) -> None:
    tagging.failing = {"a1"}
    execute(static, instance, tags=of_range("c", "b"), raise_on_error=False)
    records = instance.fetch_materializations(dg.AssetKey(["docs", "first"]), limit=10).records
    versions = {
        one.partition_key: (one.asset_materialization.tags or {})["dagster/data_version"]
        for one in records
        if one.asset_materialization is not None
    }
    assert versions.keys() == {"b", "c"}
    assert versions["b"] != versions["c"]


def test_a_killed_run_of_several_partitions_resumes_in_the_partition_it_was_killed_in(
    static: dg.Definitions, tagging: Tagging, root: Path, instance: dg.DagsterInstance
) -> None:
    tagging.failing, tagging.fatal = {"a1"}, KeyboardInterrupt()
    only = [["docs", "first"]]
    with pytest.raises(KeyboardInterrupt):
        execute(static, instance, tags=of_range("c", "b"), only=only)
    assert not instance.get_materialized_partitions(dg.AssetKey(["docs", "first"]))

    tagging.failing = set()
    result = execute(static, instance, tags=of_range("c", "b"), only=only)
    assert tagging.calls == Counter({"c0": 1, "c1": 1, "a0": 1, "a1": 2, "b0": 1, "b1": 1})
    told = partitions_of(result, "docs", "first")
    assert "already finished by run" in told["c"]["notes"]
    assert told["a"]["rows_resumed"] == 1
    assert [ids(part_of(root, "first", key)) for key in "ab"] == [["a0", "a1"], ["b0", "b1"]]

    execute(static, instance, tags=of_range("c", "b"), only=only)
    assert tagging.calls["c0"] == 2  # Dagster makes its known partitions again


def test_a_retry_of_the_step_makes_only_the_failed_partition(
    tagging: Tagging, inbox: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(
        pipeline_of(tag=tagging.operator()),
        inbox / "{partition}.jsonl",
        root,
        partitions_def=LETTERS,
        backfill_policy=SINGLE_RUN,
        retry_policy=dg.RetryPolicy(max_retries=1),
    )
    tagging.failing = {"a1"}
    execute(definitions, instance, tags=of_range("c", "b"), raise_on_error=False)
    assert tagging.calls == Counter({"c0": 1, "c1": 1, "a0": 1, "a1": 2, "b0": 1, "b1": 1})

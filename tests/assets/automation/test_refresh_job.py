"""Tests of the job that materializes stale assets and everything downstream of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import Operational, pipeline
from tests.assets.helpers import Records, definitions_of, execute, result_of, tags_of, write_jsonl
from tests.registries import OperatorRegistry

pytestmark = pytest.mark.slow

COUNT = 5


class Counted(Operational):
    """Operators of a pipeline with a fan-out; counts the calls by node."""

    def __init__(self, registry: OperatorRegistry) -> None:
        self.calls: dict[str, int] = {}

        @registry("data.text", _concurrency_mode="thread")
        def mark(record: dict, node: str, suffix: str = "") -> dict:
            self.calls[node] = self.calls.get(node, 0) + 1
            return record | {node: suffix}

        self.mark: Any = mark

    def taken(self) -> dict[str, int]:
        """Return the calls by node since the last call of this method."""
        taken = dict(self.calls)
        self.calls.clear()
        return taken

    def source(self) -> Iterator[dict[str, Any]]:
        self.calls["source"] = self.calls.get("source", 0) + 1
        return ({"id": number} for number in range(COUNT))

    def definitions(self, root: Path, source: Any, suffix: str = "", **keywords: Any) -> Any:
        """Return a -> b -> c, and beside it other -> last; ``suffix`` is an option of a."""
        with pipeline("docs") as ppl:
            ppl.a = self.mark(node="a", suffix=suffix)
            ppl.b = self.mark(node="b")
            ppl.c = self.mark(node="c")
            ppl.add("other", self.mark(node="other"), inputs=[ppl.source])
            ppl.last = self.mark(node="last")
        return definitions_of(ppl, source, root, **keywords)


@pytest.fixture
def counted(registry: OperatorRegistry) -> Counted:
    return Counted(registry)


def refresh(
    definitions: dg.Definitions, instance: dg.DagsterInstance, **keywords: Any
) -> dg.ExecuteInProcessResult:
    job = definitions.resolve_job_def("docs_refresh")
    result = job.execute_in_process(instance=instance, **keywords)
    assert result.success
    return result


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_a_changed_option_makes_its_result_and_all_downstream_results_again(
    counted: Counted, records: Records, root: Path, instance: dg.DagsterInstance, layout: Any
) -> None:
    source = records(COUNT)
    execute(counted.definitions(root, source, layout=layout), instance)
    assert counted.taken() == dict.fromkeys(["a", "b", "c", "other", "last"], COUNT)

    changed = counted.definitions(root, source, suffix="!", layout=layout)
    refresh(changed, instance)
    assert counted.taken() == dict.fromkeys(["a", "b", "c"], COUNT)
    assert all(row["a"] == "!" for row in result_of(root, "docs", "c"))

    versions = refresh(changed, instance)
    assert counted.taken() == {}
    assert len(versions.get_asset_materialization_events()) == len(["a", "b", "c", "other", "last"])


def test_after_a_refresh_dagster_finds_nothing_stale(
    counted: Counted, records: Records, root: Path, stored: dg.DagsterInstance
) -> None:
    source = records(COUNT)
    execute(counted.definitions(root, source), stored)
    changed = counted.definitions(root, source, suffix="!")
    refresh(changed, stored)
    for node in ("a", "b", "c", "other", "last"):
        key = dg.AssetKey(["docs", node])
        spec = changed.resolve_asset_graph().get(key)
        assert tags_of(stored, *key.path)["dagster/code_version"] == spec.code_version


def test_results_of_changed_files_and_missing_or_edited_results_are_made_again(
    counted: Counted, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    source = records(COUNT)
    definitions = counted.definitions(root, source)
    refresh(definitions, instance)  # nothing was made before
    assert set(counted.taken()) == {"a", "b", "c", "other", "last"}

    (root / "docs" / "c" / "c_results.jsonl").write_text('{"edited":1}\n')
    (root / "docs" / "last" / "last_results.jsonl").unlink()
    refresh(definitions, instance)
    assert counted.taken() == {"c": COUNT, "last": COUNT}

    write_jsonl(source, [{"id": 100}])
    refresh(definitions, instance)
    assert counted.taken() == dict.fromkeys(["a", "b", "c", "other", "last"], 1)


def test_a_launch_with_resume_never_makes_the_result_again(
    counted: Counted, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = counted.definitions(root, records(COUNT))
    execute(definitions, instance)
    counted.taken()
    config = {"ops": {"docs__other": {"config": {"resume": "never"}}}}
    refresh(definitions, instance, run_config=config)
    assert counted.taken() == {"other": COUNT}


def test_a_source_function_is_called_only_if_it_was_not_or_its_code_has_changed(
    counted: Counted, root: Path, instance: dg.DagsterInstance
) -> None:
    def texts() -> Iterator[dict[str, Any]]:
        return counted.source()

    definitions = counted.definitions(root, texts)
    refresh(definitions, instance)
    assert counted.taken()["source"] == 1
    refresh(definitions, instance)
    assert counted.taken() == {}

    def texts() -> Iterator[dict[str, Any]]:  # type: ignore[no-redef]
        yield from counted.source()

    refresh(counted.definitions(root, texts), instance)
    assert counted.taken() == {"source": 1}


def test_a_partitioned_pipeline_is_refreshed_by_partition(
    counted: Counted, root: Path, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    letters = dg.StaticPartitionsDefinition(["a", "b"])
    for letter in "ab":
        write_jsonl(tmp_path / f"{letter}.jsonl", [{"id": letter}])
    source = tmp_path / "{partition}.jsonl"
    before = counted.definitions(root, source, partitions_def=letters)
    for letter in "ab":
        execute(before, instance, partition_key=letter)
    counted.taken()
    changed = counted.definitions(root, source, suffix="!", partitions_def=letters)
    refresh(changed, instance, partition_key="b")
    assert counted.taken() == {"a": 1, "b": 1, "c": 1}

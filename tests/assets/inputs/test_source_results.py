"""Tests that source functions are not called again for a run that died after they had returned."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run

from dagster_dataops import Operational, Operator
from tests.assets.helpers import (
    definitions_of,
    execute,
    log_of,
    pipeline_of,
    result_of,
)
from tests.registries import OperatorRegistry


class Query(Operational):
    """An expensive source, before an operator that fails until it is fixed."""

    def __init__(self, registry: OperatorRegistry, root: Path) -> None:
        self.calls = 0
        self.state = {"fails": True}
        self.root = root

        @registry("data.text", _concurrency_mode="thread", _ignore_errors=False)
        def fragile(record: dict) -> None:
            if self.state["fails"]:
                msg = "not yet"
                raise ValueError(msg)

        self.operator: Operator = fragile()  # type: ignore[assignment]

    def definitions(self, **keywords: Any) -> dg.Definitions:
        def texts() -> Iterator[dict[str, Any]]:
            self.calls += 1
            return iter([{"call": self.calls}])

        return definitions_of(pipeline_of(a=self.operator), texts, self.root, **keywords)

    def given(self) -> list[dict[str, Any]]:
        return result_of(self.root, "docs", "texts")


@pytest.fixture
def query(registry: OperatorRegistry, root: Path) -> Query:
    return Query(registry, root)


def reexecute_all(
    definitions: dg.Definitions, instance: dg.DagsterInstance, parent: str, **tags: str
) -> str:
    """Execute all steps of a run again, as "Re-execute all" does; return the new run."""
    job = definitions.resolve_job_def("docs_pipeline")
    known = instance.get_run_by_id(parent)
    assert known is not None
    run = instance.create_run_for_job(
        job, parent_run_id=parent, root_run_id=known.root_run_id or parent, tags=tags
    )
    execute_run(InMemoryJob(job), run, instance)
    return run.run_id


@pytest.mark.slow
def test_re_executing_all_steps_of_a_failed_run_reuses_the_records_of_the_function(
    query: Query, instance: dg.DagsterInstance
) -> None:
    definitions = query.definitions()
    failed = execute(definitions, instance, raise_on_error=False)
    again = reexecute_all(definitions, instance, failed.run_id)
    query.state["fails"] = False
    last = reexecute_all(definitions, instance, again)

    assert query.calls == 1
    assert query.given() == [{"call": 1}]
    said = f"reusing the 1 record that the source function returned in run {failed.run_id}"
    assert any(said in line for line in log_of(instance, last))
    event = instance.get_latest_materialization_event(dg.AssetKey(["docs", "texts"]))
    assert event is not None
    assert event.run_id == last


def test_a_new_materialization_and_a_re_execution_of_a_run_that_succeeded_call_it_again(
    query: Query, instance: dg.DagsterInstance
) -> None:
    definitions = query.definitions()
    execute(definitions, instance, raise_on_error=False)
    query.state["fails"] = False
    made = execute(definitions, instance)
    assert query.calls == 2
    reexecute_all(definitions, instance, made.run_id)
    assert query.calls == 3


def test_a_function_whose_code_has_changed_is_called_again(
    query: Query, instance: dg.DagsterInstance
) -> None:
    failed = execute(query.definitions(), instance, raise_on_error=False)
    query.state["fails"] = False

    def texts() -> Iterator[dict[str, Any]]:
        yield {"call": "another"}

    definitions = definitions_of(pipeline_of(a=query.operator), texts, query.root)
    reexecute_all(definitions, instance, failed.run_id)
    assert query.given() == [{"call": "another"}]


def test_an_edited_result_is_not_reused(query: Query, instance: dg.DagsterInstance) -> None:
    failed = execute(query.definitions(), instance, raise_on_error=False)
    query.state["fails"] = False
    (query.root / "docs" / "texts" / "texts_results.jsonl").write_text('{"edited":1}\n')
    reexecute_all(query.definitions(), instance, failed.run_id)
    assert query.calls == 2


def test_each_partition_has_a_separate_result(query: Query, instance: dg.DagsterInstance) -> None:
    def texts(key: str) -> Iterator[dict[str, Any]]:
        query.calls += 1
        yield {"key": key}

    letters = dg.StaticPartitionsDefinition(["a", "b"])
    definitions = definitions_of(
        pipeline_of(a=query.operator), texts, query.root, partitions_def=letters
    )
    failed = execute(definitions, instance, partition_key="a", raise_on_error=False)
    query.state["fails"] = False
    reexecute_all(definitions, instance, failed.run_id, **{"dagster/partition": "b"})
    assert query.calls == 2
    reexecute_all(definitions, instance, failed.run_id, **{"dagster/partition": "a"})
    assert query.calls == 2

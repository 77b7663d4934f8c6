"""Tests that an unreported result is reused by the next run, and by no later one."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import pytest
from typing_extensions import override

from dagster_dataops import DataOpsResource, JsonlDataset, Operator, RunReport, build_definitions
from tests.assets.helpers import execute, log_of, numbered, pipeline_of, result_of, write_jsonl
from tests.faults.crashing import in_child
from tests.registries import OperatorRegistry

LETTERS = dg.StaticPartitionsDefinition(["a", "b"])
Launch = Callable[..., dg.ExecuteInProcessResult]


class Dying(DataOpsResource):
    """Fails right after the results of these nodes were published."""

    nodes: ClassVar[set[str]] = set()
    killed: ClassVar[bool] = False  # the whole process, so that the run stays "started"

    @override
    def run_operator(
        self, context: Any, operator: Operator, inputs: Sequence[JsonlDataset], *more: Any
    ) -> RunReport:
        report = super().run_operator(context, operator, inputs, *more)
        if report.node in self.nodes:
            if self.killed:
                os.kill(os.getpid(), signal.SIGKILL)
            raise dg.Failure("dead")
        return report


@pytest.fixture
def dying() -> Iterator[set[str]]:
    Dying.nodes.clear()
    yield Dying.nodes
    Dying.nodes.clear()


@pytest.fixture
def calls() -> Counter[str]:
    return Counter()


@pytest.fixture
def launch(
    registry: OperatorRegistry,
    root: Path,
    tmp_path: Path,
    instance: dg.DagsterInstance,
    calls: Counter[str],
    dying: set[str],  # nodes; none at first
) -> Launch:
    """Materializes two nodes, or only one, of a pipeline that may have partitions."""

    @registry("data.text", _concurrency_mode="single")
    def mark(record: dict, node: str, value: int = 1) -> dict:
        calls[node] += 1
        if value < 0:
            msg = "below zero"
            raise ValueError(msg)
        return record | {node: value}

    ppl = pipeline_of(first=mark(node="first"), second=mark(node="second"))
    for name in ("texts", "a", "b"):
        write_jsonl(tmp_path / f"{name}.jsonl", list(numbered(3)))

    def launched(
        config: dict[str, Any] | None = None,
        *,
        within: dg.DagsterInstance = instance,
        partitions_def: dg.PartitionsDefinition | None = None,
        job: str = "",
        **keywords: Any,
    ) -> dg.ExecuteInProcessResult:
        definitions = build_definitions(
            ppl,
            source=tmp_path / ("{partition}.jsonl" if partitions_def else "texts.jsonl"),
            resource=Dying(root=str(root), lock_seconds=0.2),
            partitions_def=partitions_def,
            jobs=["pipeline", "retry"],
        )
        given = {"ops": {"docs__first": {"config": config}}} if config else None
        keywords = {"raise_on_error": False, **keywords}
        if job:
            found = definitions.resolve_job_def(job)
            return found.execute_in_process(run_config=given, instance=within, **keywords)
        return execute(definitions, within, given, **keywords)

    return launched


def test_an_unreported_result_is_reused_by_the_next_run_only(
    launch: Launch, dying: set[str], calls: Counter[str], root: Path, instance: dg.DagsterInstance
) -> None:
    dying.add("first")
    dead = launch()
    assert not dead.success
    assert calls == {"first": 3}

    dying.clear()
    result = launch()
    assert result.success
    assert calls == {"first": 3, "second": 3}
    assert f"already finished by run {dead.run_id}" in "\n".join(log_of(instance, result.run_id))
    assert [row["first"] for row in result_of(root, "docs", "second")] == [1, 1, 1]

    assert launch().success
    assert calls == {"first": 6, "second": 6}


@pytest.mark.slow
def test_a_result_of_a_killed_run_is_reused_even_if_dagster_shows_the_run_as_running(
    launch: Launch,
    dying: set[str],
    calls: Counter[str],
    root: Path,
    stored: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dying.add("first")
    monkeypatch.setattr(Dying, "killed", True)
    assert in_child(lambda: launch(within=stored)) == -signal.SIGKILL
    (dead,) = stored.get_run_records()
    assert dead.dagster_run.status is dg.DagsterRunStatus.STARTED

    dying.clear()
    result = launch(within=stored)
    assert result.success
    assert calls == {"second": 3}  # the first node's calls were made in the child
    note = f"already finished by run {dead.dagster_run.run_id}"
    assert note in "\n".join(log_of(stored, result.run_id))

    assert launch(within=stored).success
    assert calls == {"first": 3, "second": 6}


@pytest.mark.parametrize(
    ("then", "again"),
    [
        ({}, 0),
        ({"config": {"resume": "never"}}, 3),
        ({"config": {"params": {"value": 2}}}, 3),
        ({"within": None}, 3),  # an instance that does not know that the run has failed
    ],
)
def test_a_result_that_was_unreported_twice_is_reused_unless_it_is_to_be_made_again(
    launch: Launch, dying: set[str], calls: Counter[str], then: Any, again: int
) -> None:
    dying.add("first")
    for _ in range(2):
        assert not launch().success
    assert calls["first"] == 3
    dying.clear()
    with dg.DagsterInstance.ephemeral() as other:
        assert launch(**(then | {"within": other} if "within" in then else then)).success
    assert calls["first"] == 3 + again
    assert launch().success
    assert calls["first"] == 6 + again


def test_its_failed_records_are_retried_by_the_job_for_that(
    launch: Launch, dying: set[str], calls: Counter[str]
) -> None:
    failing = {"params": {"value": -1}}
    dying.add("first")
    assert not launch(failing).success
    dying.clear()
    launch(failing, job="docs_retry_failed_records")
    assert calls["first"] == 6


@pytest.mark.parametrize("only", [None, [["docs", "first"]]])
def test_a_reported_result_is_made_again_although_its_run_failed_later(
    launch: Launch, dying: set[str], calls: Counter[str], only: Any
) -> None:
    dying.add("second")
    assert not launch().success
    dying.clear()
    assert launch(only=only).success
    assert calls["first"] == 6


def test_a_result_adopted_by_a_successful_re_execution_is_made_again_later(
    launch: Launch, dying: set[str], calls: Counter[str]
) -> None:
    dying.add("first")
    dead = launch(only=[["docs", "first"]])
    dying.clear()
    tags = {
        "dagster/parent_run_id": dead.run_id,
        "dagster/root_run_id": dead.run_id,
        "dagster/is_resume_retry": "true",
    }
    assert launch(only=[["docs", "first"]], tags=tags).success
    assert calls["first"] == 3
    assert launch(only=[["docs", "first"]]).success
    assert calls["first"] == 6


@pytest.mark.slow
def test_an_unreported_partition_is_reused_by_the_next_run_only(
    launch: Launch, dying: set[str], calls: Counter[str]
) -> None:
    assert launch(partitions_def=LETTERS, partition_key="b").success
    dying.add("first")
    assert not launch(partitions_def=LETTERS, partition_key="a").success
    assert calls["first"] == 6

    dying.clear()
    assert launch(partitions_def=LETTERS, partition_key="a").success
    assert calls["first"] == 6
    for partition in "ab":
        assert launch(partitions_def=LETTERS, partition_key=partition).success
    assert calls["first"] == 12

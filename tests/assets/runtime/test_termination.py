"""Tests that an interrupt ends a run, whatever its retry policy."""

from pathlib import Path

import dagster as dg
import pytest

from dagster_dataops import build_definitions, pipeline
from dagster_dataops.assets.runtime.termination import ended_by_interrupts
from dagster_dataops.errors import RunStoppedError
from tests.assets.helpers import Records, resource_at
from tests.registries import OperatorRegistry

RETRIES = dg.RetryPolicy(max_retries=3, delay=0)


@pytest.mark.parametrize("policy", [RETRIES, None], ids=["retries", "none"])
def test_an_interrupted_step_is_not_tried_again_and_no_other_step_begins(
    registry: OperatorRegistry,
    records: Records,
    tmp_path: Path,
    instance: dg.DagsterInstance,
    policy: dg.RetryPolicy | None,
) -> None:
    calls: list[str] = []

    @registry("data.text", _concurrency_mode="single")
    def interrupted(record: dict, node: str) -> dict:
        calls.append(node)
        raise KeyboardInterrupt

    with pipeline("docs") as ppl:
        for name in ("one", "two", "three"):
            ppl.add(name, interrupted(node=name), inputs=[ppl.source])
    definitions = build_definitions(
        ppl, source=records(3), resource=resource_at(tmp_path / "root"), retry_policy=policy
    )
    job = definitions.resolve_job_def("docs_pipeline")
    try:
        result = job.execute_in_process(instance=instance, raise_on_error=False)
    except KeyboardInterrupt:
        assert policy is None
    else:
        kinds = [event.event_type for event in result.all_events]
        assert dg.DagsterEventType.STEP_UP_FOR_RETRY not in kinds
        assert not result.success
    assert len(calls) == 1


def test_a_stop_while_the_run_is_canceling_is_no_failure_to_retry(
    instance: dg.DagsterInstance,
) -> None:
    tries: list[int] = []

    @dg.op(retry_policy=RETRIES)
    def stopped(context: dg.OpExecutionContext) -> None:
        tries.append(context.retry_number)
        canceling = context.run.with_status(dg.DagsterRunStatus.CANCELING)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(context.instance, "get_run_by_id", lambda _: canceling)
            with ended_by_interrupts(context):
                raise RunStoppedError("data.x", "its run is being terminated")

    @dg.job
    def job() -> None:
        stopped()

    assert not job.execute_in_process(instance=instance, raise_on_error=False).success
    assert tries == [0]


def test_other_stops_are_left_to_the_retry_policy(instance: dg.DagsterInstance) -> None:
    tries: list[int] = []

    @dg.op(retry_policy=RETRIES)
    def stopped(context: dg.OpExecutionContext) -> None:
        tries.append(context.retry_number)
        with ended_by_interrupts(context):
            raise ValueError("the server is away")

    @dg.job
    def job() -> None:
        stopped()

    assert not job.execute_in_process(instance=instance, raise_on_error=False).success
    assert tries == [0, 1, 2, 3]

"""Tests that every way of re-execution in Dagster resumes in the middle of a dataset."""

from typing import Any

import pytest

from tests.end_to_end.dagster_server import RECORDS, DagsterServer
from tests.end_to_end.going_on import HELD, UNDISTURBED, check_went_on, interrupted, kill, step_of
from tests.end_to_end.rows import row


def killed_in_the_second_step(server: DagsterServer, node: str) -> str:
    """Launch a run of two operators and kill it in the middle of the second; return the run."""
    server.pace(node, 0.05, held=HELD)
    run = server.launch_assets((node, "quick"), (node, "shout"))
    calls = server.wait_for_calls(node, RECORDS // 3)
    kill(step_of(calls[0]))
    server.finish(run, "FAILURE")
    return run


@row
@pytest.mark.parametrize("node", ["asset_failure", "selected_steps"])
def test_a_re_execution_keeps_finished_results_and_resumes_the_others(
    server: DagsterServer, record: Any, node: str
) -> None:
    run = killed_in_the_second_step(server, node)
    before = server.calls(node)
    server.pace(node, 0)
    if node == "asset_failure":
        again = server.reexecute(run, "FROM_ASSET_FAILURE")
    else:
        assets = [(node, "quick"), (node, "shout")]
        again = server.reexecute_steps(run, *assets, steps=[f"{node}__shout"])
    server.finish(again, "SUCCESS")
    record("done_twice", check_went_on(server, node, again, before))
    assert len(server.calls(f"{node}_quick")) == RECORDS


@row
def test_a_re_execution_of_all_steps_resumes_unfinished_results(
    server: DagsterServer, record: Any
) -> None:
    run = killed_in_the_second_step(server, "all_steps")
    before = server.calls("all_steps")
    server.pace("all_steps", 0)
    again = server.reexecute(run, "ALL_STEPS")
    server.finish(again, "SUCCESS")
    record("done_twice", check_went_on(server, "all_steps", again, before))
    assert len(server.calls("all_steps_quick")) == 2 * RECORDS
    assert server.result("all_steps", "quick") == UNDISTURBED


@row
def test_a_run_that_dagster_itself_retries_resumes_where_it_stopped(
    server: DagsterServer, record: Any
) -> None:
    run = interrupted(server, "run_retried", max_retries="1")
    first = {call.process for call in server.calls("run_retried")}
    kill(step_of(server.calls("run_retried")[0]))
    again = server.retry_of(run)
    server.pace("run_retried", 0)
    server.finish(again, "SUCCESS")
    before = [call for call in server.calls("run_retried") if call.process in first]
    record("done_twice", check_went_on(server, "run_retried", again, before))

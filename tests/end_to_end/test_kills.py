"""Tests of runs and steps of a real Dagster that are killed or orphaned, and resume.

``streamed`` is the source of its pipeline, written by a separate asset.
"""

import time
from typing import Any

import psutil
import pytest

from tests.end_to_end.dagster_server import MULTIPROCESS, RECORDS, DagsterServer, until
from tests.end_to_end.going_on import (
    BETWEEN_POSITIONS,
    HELD,
    UNDISTURBED,
    check_went_on,
    gone,
    interrupted,
    kill,
    step_of,
)
from tests.end_to_end.rows import row
from tests.faults.cases import cases

RELAUNCHED = [("relaunched", 0.05, 32), ("streamed_relaunched", 0.02, BETWEEN_POSITIONS)]


@pytest.mark.parametrize(
    ("node", "seconds", "in_flight"), cases(RELAUNCHED[:1], campaign=RELAUNCHED)
)
@row
def test_a_killed_run_that_is_launched_again_resumes_where_it_stopped(
    server: DagsterServer, record: Any, node: str, seconds: float, in_flight: int
) -> None:
    run = interrupted(server, node, seconds=seconds)
    kill(step_of(server.calls(node)[0]))
    server.finish(run, "FAILURE")
    before = server.calls(node)
    server.pace(node, 0)
    again = server.launch(node, "shout")
    server.finish(again, "SUCCESS")
    record("done_twice", check_went_on(server, node, again, before, in_flight))


@row
def test_a_killed_run_that_is_re_executed_from_its_failure_resumes_where_it_stopped(
    server: DagsterServer, record: Any
) -> None:
    run = interrupted(server, "reexecuted", seconds=0.02, workers=2)
    workers = {call.process for call in server.calls("reexecuted")}
    kill(step_of(server.calls("reexecuted")[0]))
    until(lambda: all(map(gone, workers)), "the end of the workers")
    server.finish(run, "FAILURE")
    before = server.calls("reexecuted")
    server.pace("reexecuted", 0)
    again = server.reexecute(run)
    server.finish(again, "SUCCESS")
    record("done_twice", check_went_on(server, "reexecuted", again, before))


ORPHANS = [
    ("orphaned_processes", 2, 32),
    ("streamed_orphaned", 1, BETWEEN_POSITIONS),
    ("orphaned", 1, 32),
]


@pytest.mark.parametrize(("node", "workers", "in_flight"), cases(ORPHANS[:2], campaign=ORPHANS))
@row
def test_an_orphaned_step_ends_and_its_successor_waits_for_it(
    server: DagsterServer, record: Any, node: str, workers: int, in_flight: int
) -> None:
    run = interrupted(server, node, MULTIPROCESS, 0.02, workers)
    step = step_of(server.calls(node)[-1])
    orphans = {call.process for call in server.calls(node)}
    server.pace(node, 0.5, held=HELD)  # it must not be through before it notices
    killed = time.time()
    kill(psutil.Process(step).ppid())
    server.finish(run, "FAILURE")
    again = server.reexecute(run)
    until(lambda: gone(step), "the end of the orphan")
    record("orphan_seconds", round(time.time() - killed, 2))
    server.pace(node, 0)
    server.finish(again, "SUCCESS")

    calls = server.calls(node)
    before = [call for call in calls if call.process in orphans]
    after = [call for call in calls if call.process not in orphans]
    assert max(call.time for call in before) > killed, "the orphan outlived its parent"
    assert max(call.time for call in before) < min(call.time for call in after)
    record("done_twice", check_went_on(server, node, again, before, in_flight))


RETRIED = [("retried", 2, 32), ("streamed_retried", 1, BETWEEN_POSITIONS)]


@pytest.mark.parametrize(("node", "workers", "in_flight"), cases(RETRIED[:1], campaign=RETRIED))
@row
def test_a_killed_step_is_retried_and_resumes_where_it_stopped(
    server: DagsterServer, record: Any, node: str, workers: int, in_flight: int
) -> None:
    run = interrupted(server, node, MULTIPROCESS, 0.02, workers)
    first = {call.process for call in server.calls(node)}
    kill(step_of(server.calls(node)[-1]))
    until(lambda: all(map(gone, first)), "the end of the step and its workers")
    server.pace(node, 0)
    server.finish(run, "SUCCESS")
    before = [call for call in server.calls(node) if call.process in first]
    record("done_twice", check_went_on(server, node, run, before, in_flight))


@row
def test_a_result_that_was_published_before_the_kill_is_not_made_again(
    server: DagsterServer, record: Any
) -> None:
    (server.home / "published.die").touch()
    run = server.launch("published", "shout")
    server.finish(run, "FAILURE")
    again = server.reexecute(run)
    server.finish(again, "SUCCESS")
    assert server.result("published") == UNDISTURBED
    assert len(server.calls("published")) == RECORDS
    assert f"already finished by run {run}" in server.log(again)


PUBLISHED = ["streamed_published", "published_relaunched"]


@pytest.mark.parametrize("node", cases(PUBLISHED[:1], campaign=PUBLISHED))
@row
def test_a_result_published_before_the_kill_is_reused_by_the_next_launch_only(
    server: DagsterServer, record: Any, node: str
) -> None:
    (server.home / f"{node}.die").touch()
    run = server.launch(node, "shout")
    server.finish(run, "FAILURE")
    again = server.launch(node, "shout")
    server.finish(again, "SUCCESS")
    assert server.result(node) == UNDISTURBED
    assert len(server.calls(node)) == RECORDS
    assert f"already finished by run {run}" in server.log(again)

    server.finish(server.launch(node, "shout"), "SUCCESS")
    assert len(server.calls(node)) == 2 * RECORDS
    record("done_twice", 0)

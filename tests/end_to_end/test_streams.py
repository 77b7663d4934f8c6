"""Sources that are streams, in a real Dagster: killed, orphaned and cancelled, they go on."""

import time
from typing import Any

import psutil

from tests.end_to_end.dagster_server import MULTIPROCESS, RECORDS, DagsterServer, until
from tests.end_to_end.going_on import (
    UNDISTURBED,
    check_went_on,
    gone,
    interrupted,
    kill,
    step_of,
)
from tests.end_to_end.rows import row

_A_SECOND = 60  # items at the pace of these tests: what lies between two positions
_PACE = 0.02


@row
def test_a_killed_stream_that_is_launched_again_goes_on_where_it_stopped(
    server: DagsterServer, record: Any
) -> None:
    node = "streamed_relaunched"
    run = interrupted(server, node, seconds=_PACE)
    kill(step_of(server.calls(node)[0]))
    server.finish(run, "FAILURE")
    before = server.calls(node)
    server.pace(node, 0)
    again = server.launch(node, "shout")
    server.finish(again, "SUCCESS")
    record("done_twice", check_went_on(server, node, again, before, _A_SECOND))


@row
def test_a_killed_step_of_a_stream_is_retried_and_goes_on_where_it_stopped(
    server: DagsterServer, record: Any
) -> None:
    node = "streamed_retried"
    run = interrupted(server, node, MULTIPROCESS, _PACE)
    first = server.calls(node)[-1].process
    kill(first)
    until(lambda: gone(first), "the end of the step", 20.0)
    server.pace(node, 0)
    server.finish(run, "SUCCESS")
    before = [call for call in server.calls(node) if call.process == first]
    record("done_twice", check_went_on(server, node, run, before, _A_SECOND))


@row
def test_an_orphaned_step_of_a_stream_ends_by_itself_and_who_goes_on_waits_for_it(
    server: DagsterServer, record: Any
) -> None:
    node = "streamed_orphaned"
    run = interrupted(server, node, MULTIPROCESS, _PACE)
    step = step_of(server.calls(node)[-1])
    server.pace(node, 0.2)  # it must not be through before it notices
    kill(psutil.Process(step).ppid())
    server.finish(run, "FAILURE")
    again = server.reexecute(run)
    until(lambda: gone(step), "the end of the orphan", 40.0)
    server.pace(node, 0)
    server.finish(again, "SUCCESS")
    calls = server.calls(node)
    before = [call for call in calls if call.process == step]
    after = [call for call in calls if call.process != step]
    assert max(call.time for call in before) < min(call.time for call in after)
    record("done_twice", check_went_on(server, node, again, before, _A_SECOND))


@row
def test_a_stream_that_is_cancelled_ends_at_once_and_goes_on_later(
    server: DagsterServer, record: Any
) -> None:
    node = "streamed_terminated"
    run = interrupted(server, node, MULTIPROCESS, _PACE)
    step = step_of(server.calls(node)[-1])
    began = time.monotonic()
    server.terminate(run)
    until(lambda: gone(step), "the end of the step's process")
    record("seconds_to_end", round(time.monotonic() - began, 2))
    server.finish(run, "CANCELED")
    before = server.calls(node)
    server.pace(node, 0)
    again = server.launch(node, "shout")
    server.finish(again, "SUCCESS")
    record("done_twice", check_went_on(server, node, again, before, _A_SECOND))


@row
def test_a_stream_that_was_published_before_the_kill_is_not_read_again(
    server: DagsterServer, record: Any
) -> None:
    node = "streamed_published"
    (server.home / f"{node}.die").touch()
    run = server.launch(node, "shout")
    server.finish(run, "FAILURE")
    again = server.launch(node, "shout")
    server.finish(again, "SUCCESS")
    assert server.result(node) == UNDISTURBED
    assert len(server.calls(node)) == RECORDS
    assert f"already finished by run {run}" in server.log(again)
    record("done_twice", 0)

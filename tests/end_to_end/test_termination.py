"""Tests of runs cancelled by their page or by a signal, with the maximum of calls in flight."""

import signal
import time
from collections import Counter
from typing import Any

import psutil
import pytest

from tests.end_to_end.dagster_server import (
    HANG_SECONDS,
    IN_PROCESS,
    MULTIPROCESS,
    RECORDS,
    Call,
    DagsterServer,
    until,
)
from tests.end_to_end.going_on import (
    BETWEEN_POSITIONS,
    check_went_on,
    gone,
    interrupted,
    step_of,
    wait_until_no_run_is_left,
)
from tests.end_to_end.rows import Rows, row
from tests.faults.cases import cases

QUICK = 100  # records after which every call hangs


def stuck(
    server: DagsterServer, node: str, calls: int, config: dict[str, Any]
) -> tuple[str, list[Call], int]:
    """Launch a run; return it, its calls and its step when the given number of calls hangs."""
    server.pace(node, HANG_SECONDS, first=QUICK)
    run = server.launch(node, "shout", config=config)
    before = server.wait_for_calls(node, QUICK + calls)
    return run, before, step_of(before[-1])


# Threads and coroutines are also canceled by the test of calls that are waited for.
MODES = [
    ("single", 1, 0, IN_PROCESS),  # the hundred took a moment only
    ("process", 2, 0, MULTIPROCESS),
    ("thread", 64, QUICK, IN_PROCESS),
    ("async", 64, QUICK, IN_PROCESS),
]


@row
@pytest.mark.parametrize(("mode", "in_flight", "kept", "config"), cases(MODES[:2], campaign=MODES))
def test_a_run_with_many_calls_in_flight_is_cancelled_at_once_and_resumes_later(
    server: DagsterServer,
    record: Any,
    mode: str,
    in_flight: int,
    kept: int,
    config: dict[str, Any],
) -> None:
    node = f"terminated_{mode}"
    run, before, step = stuck(server, node, in_flight, config)
    began = time.monotonic()
    server.terminate(run)
    until(lambda: gone(step), "the end of the step's process")
    record("seconds_to_end", round(time.monotonic() - began, 2))
    server.finish(run, "CANCELED")
    record("seconds_to_cancelled", round(time.monotonic() - began, 2))

    server.pace(node, 0)
    again = server.launch(node, "shout") if mode != "single" else server.reexecute(run)
    server.finish(again, "SUCCESS")
    assert kept <= server.manifest(node)["resumed"] <= QUICK
    unsettled = 0 if kept else QUICK
    record("done_twice", check_went_on(server, node, again, before, in_flight + unsettled))


@row
@pytest.mark.parametrize("mode", ["thread", "async"])
def test_no_call_in_flight_at_the_termination_is_made_twice(
    server: DagsterServer, record: Any, mode: str
) -> None:
    node = f"drained_{mode}"
    server.pace(node, 8, first=QUICK)  # all records: 40 s, unless the run is canceled
    run = server.launch(node, "shout", config=IN_PROCESS)
    server.wait_for_calls(node, QUICK + 100)
    server.terminate(run)
    server.finish(run, "CANCELED")
    assert len(server.calls(node)) < RECORDS
    server.pace(node, 0)
    server.finish(server.launch(node, "shout"), "SUCCESS")
    calls = Counter(call.record for call in server.calls(node))
    record("done_twice", sum(number - 1 for number in calls.values()))
    assert calls == dict.fromkeys(range(RECORDS), 1)


@row
@pytest.mark.parametrize(
    ("how", "config"), [("in_process", IN_PROCESS), ("multiprocess", MULTIPROCESS)]
)
def test_one_termination_ends_a_run_with_a_retry_policy(
    server: DagsterServer, record: Any, how: str, config: dict[str, Any]
) -> None:
    name = f"terminated_retrying_{how}"
    nodes = [f"{name}_{one}" for one in ("one", "two")]
    for node in nodes:
        server.pace(node, 0.1)
    run = server.launch_assets(*((name, one) for one in ("one", "two")), config=config)
    until(lambda: any(len(server.calls(node)) > QUICK for node in nodes), "calls")
    server.terminate(run)
    server.finish(run, "CANCELED")
    before = {node: server.calls(node) for node in nodes}
    if how == "in_process":  # the second step did not begin
        assert sorted(map(bool, before.values())) == [False, True]
    assert all(len(calls) < RECORDS for calls in before.values())
    for node in nodes:
        server.pace(node, 0)
    server.finish(server.reexecute(run), "SUCCESS")
    calls = [Counter(call.record for call in server.calls(node)) for node in nodes]
    assert all(one.keys() == set(range(RECORDS)) for one in calls)
    twice = sum(number - 1 for one in calls for number in one.values())
    record("done_twice", twice)
    assert twice <= 16


@row
def test_a_run_cancelled_by_force_ends_and_the_next_run_resumes(
    server: DagsterServer, record: Any
) -> None:
    run, before, step = stuck(server, "forced", 64, MULTIPROCESS)
    server.terminate(run, force=True)
    assert server.status(run) == "CANCELED"
    server.pace("forced", 0)
    again = server.launch("forced", "shout")
    server.finish(again, "SUCCESS")
    until(lambda: gone(step), "the end of the step's process")  # it gives its folder up before
    record("done_twice", check_went_on(server, "forced", again, before, 64))


@row
def test_a_terminated_step_settles_finished_records(server: DagsterServer, record: Any) -> None:
    run = interrupted(server, "told_to_end", MULTIPROCESS, 0.02)
    step = step_of(server.calls("told_to_end")[-1])
    psutil.Process(step).send_signal(signal.SIGTERM)
    server.finish(run, "FAILURE")
    until(lambda: gone(step), "the end of the step's process")
    before = server.calls("told_to_end")
    server.pace("told_to_end", 0)
    again = server.reexecute(run)
    server.finish(again, "SUCCESS")
    record("done_twice", check_went_on(server, "told_to_end", again, before, in_flight=2))
    assert server.manifest("told_to_end")["resumed"] > RECORDS // 4


@row
def test_a_stream_that_is_cancelled_ends_at_once_and_resumes_later(
    server: DagsterServer, record: Any
) -> None:
    node = "streamed_terminated"
    run = interrupted(server, node, MULTIPROCESS, 0.02)
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
    record("done_twice", check_went_on(server, node, again, before, BETWEEN_POSITIONS))


def test_ctrl_c_ends_the_server_and_no_process_of_a_run_is_left(
    server: DagsterServer, rows: Rows
) -> None:
    """The last test of the shared server: later tests do not run beside it."""
    rows.wait()
    wait_until_no_run_is_left(server)
    server.interrupt()
    assert server.processes() == []

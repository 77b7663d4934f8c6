"""Runs of a real Dagster that are killed, terminated, orphaned and edited, and go on."""

import os
import signal
import time
from collections import Counter
from typing import Any

import orjson
import psutil
import pytest

from tests.end_to_end.dagster_server import (
    BUGGY,
    IN_PROCESS,
    MULTIPROCESS,
    RECORDS,
    SOUND,
    Call,
    DagsterServer,
    until,
)

UNDISTURBED = b"".join(
    orjson.dumps(row | {"text": row["text"].upper()}) + b"\n" for row in DagsterServer.source()
)
UNSETTLED_SECONDS = 0.6  # the longest time for which a finished record may not be settled


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def interrupted(server: DagsterServer, node: str, config: dict[str, Any] = IN_PROCESS) -> str:
    """Launch a slow run and return it when a third of its records have been worked on."""
    server.pace(node, 0.02)
    run = server.launch(node, "shout", config=config)
    server.wait_for_calls(node, RECORDS // 3)
    return run


def step_of(call: Call) -> int:
    """The process of the step that a call belongs to: the worker's parent, or the caller."""
    process = psutil.Process(call.process)
    arguments = " ".join(process.cmdline())
    return process.ppid() if "execution.worker" in arguments else process.pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def check_went_on(server: DagsterServer, node: str, run: str, before: list[Call]) -> int:
    """The result is that of an undisturbed run; return how many records were done twice: few."""
    assert server.result(node) == UNDISTURBED
    calls = server.calls(node)
    times = Counter(call.record for call in calls)
    assert set(times) == set(range(RECORDS))
    assert max(times.values()) <= 2

    last = max(call.time for call in before)
    unsettled = sum(call.time > last - UNSETTLED_SECONDS for call in before)
    in_flight = 32
    assert len(calls) - RECORDS <= in_flight + unsettled

    resumed = server.manifest(node)["resumed"]
    assert resumed == RECORDS - (len(calls) - len(before))
    assert f"resuming: {resumed} " in server.log(run)
    return len(calls) - RECORDS


def test_a_killed_run_that_is_launched_again_goes_on_where_it_stopped(
    server: DagsterServer, record_property: Any
) -> None:
    run = interrupted(server, "relaunched")
    kill(step_of(server.calls("relaunched")[0]))
    server.finish(run, "FAILURE")
    before = server.calls("relaunched")
    server.pace("relaunched", 0)
    again = server.launch("relaunched", "shout")
    server.finish(again, "SUCCESS")
    record_property("done_twice", check_went_on(server, "relaunched", again, before))


def test_a_killed_run_that_is_re_executed_from_its_failure_goes_on_where_it_stopped(
    server: DagsterServer, record_property: Any
) -> None:
    run = interrupted(server, "reexecuted")
    workers = {call.process for call in server.calls("reexecuted")}
    kill(step_of(server.calls("reexecuted")[0]))
    until(lambda: all(map(gone, workers)), "the end of the workers", 5.0)
    server.finish(run, "FAILURE")
    before = server.calls("reexecuted")
    server.pace("reexecuted", 0)
    again = server.reexecute(run)
    server.finish(again, "SUCCESS")
    record_property("done_twice", check_went_on(server, "reexecuted", again, before))


@pytest.mark.parametrize(
    ("node", "workers", "kept", "config"),
    [
        ("terminated", 32, 100, IN_PROCESS),
        ("terminated_processes", 2, 0, MULTIPROCESS),  # the hundred took them a moment only
    ],
)
def test_a_run_with_all_its_calls_in_flight_is_cancelled_at_once_and_goes_on_later(
    node: str,
    workers: int,
    kept: int,
    config: dict[str, Any],
    server: DagsterServer,
    record_property: Any,
) -> None:
    server.pace(node, 60, first=100)
    run = server.launch(node, "shout", config=config)
    before = server.wait_for_calls(node, 100 + workers)
    step = step_of(before[0])
    began = time.monotonic()
    server.terminate(run)
    server.finish(run, "CANCELED", seconds=6.0)
    record_property("seconds_to_cancelled", round(time.monotonic() - began, 2))
    until(lambda: gone(step), "the end of the step's process", 5.0)

    server.pace(node, 0)
    again = server.launch(node, "shout")
    server.finish(again, "SUCCESS")
    assert kept <= server.manifest(node)["resumed"] <= 100
    record_property("done_twice", check_went_on(server, node, again, before))


@pytest.mark.parametrize("node", ["orphaned", "orphaned_processes"])
def test_an_orphaned_step_ends_by_itself_and_who_goes_on_waits_for_it(
    node: str, server: DagsterServer, record_property: Any
) -> None:
    run = interrupted(server, node, MULTIPROCESS)
    step = step_of(server.calls(node)[-1])
    orphans = {call.process for call in server.calls(node)}
    server.pace(node, 0.2)  # it must not be through before it notices
    killed = time.monotonic()
    kill(psutil.Process(step).ppid())
    server.finish(run, "FAILURE")
    assert not gone(step)

    again = server.reexecute(run)
    until(lambda: gone(step), "the end of the orphan", 12.0)
    record_property("orphan_seconds", round(time.monotonic() - killed, 2))
    server.pace(node, 0)
    server.finish(again, "SUCCESS")

    calls = server.calls(node)
    before = [call for call in calls if call.process in orphans]
    after = [call for call in calls if call.process not in orphans]
    assert max(call.time for call in before) < min(call.time for call in after)
    record_property("done_twice", check_went_on(server, node, again, before))


def test_a_killed_step_is_retried_and_goes_on_where_it_stopped(
    server: DagsterServer, record_property: Any
) -> None:
    run = interrupted(server, "retried", MULTIPROCESS)
    first = {call.process for call in server.calls("retried")}
    kill(step_of(server.calls("retried")[-1]))
    until(lambda: all(map(gone, first)), "the end of the workers", 5.0)
    server.pace("retried", 0)
    server.finish(run, "SUCCESS")
    before = [call for call in server.calls("retried") if call.process in first]
    record_property("done_twice", check_went_on(server, "retried", run, before))


def test_a_result_that_was_published_before_the_kill_is_not_made_again(
    server: DagsterServer,
) -> None:
    (server.home / "die_after_publishing").touch()
    run = server.launch("published", "shout")
    server.finish(run, "FAILURE")
    again = server.reexecute(run)
    server.finish(again, "SUCCESS")
    assert server.result("published") == UNDISTURBED
    assert len(server.calls("published")) == RECORDS
    assert f"already finished by run {run}" in server.log(again)


def edited(server: DagsterServer, source: str) -> None:
    (server.home / "fragile.py").write_text(source)
    server.reload()


def test_edited_code_starts_afresh_and_says_so_unless_it_is_asked_to_go_on(
    server: DagsterServer,
) -> None:
    run = server.launch("edited", "fragile")
    server.finish(run, "FAILURE")
    assert "failed on record 400" in server.log(run)

    edited(server, SOUND)
    config: dict[str, Any] = {"ops": {"edited__fragile": {"config": {"resume": "across_code"}}}}
    goes_on = server.launch("edited", "fragile", config=IN_PROCESS | config)
    server.finish(goes_on, "SUCCESS")
    assert server.manifest("edited", "fragile")["resumed"] == 400
    assert "code has changed since, those records are kept as asked" in server.log(goes_on)

    edited(server, BUGGY)
    server.finish(server.launch("edited", "fragile"), "FAILURE")
    edited(server, SOUND)
    afresh = server.launch("edited", "fragile")
    server.finish(afresh, "SUCCESS")
    assert server.manifest("edited", "fragile")["resumed"] == 0
    assert "starting afresh: 400 records" in server.log(afresh)
    assert "its code has changed since" in server.log(afresh)
    assert server.result("edited", "fragile").count(b"!") == RECORDS


def test_nothing_of_all_this_is_left_running(server: DagsterServer) -> None:
    def left() -> list[str]:
        commands = [" ".join(process.cmdline()) for process in server.processes()]
        return [c for c in commands if "execution.worker" in c or "execute_" in c]

    until(lambda: not left(), f"the end of {left()}", 10.0)

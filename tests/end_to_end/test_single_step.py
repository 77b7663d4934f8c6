"""Tests of one step for a whole pipeline, killed and terminated in its middle, and re-executed."""

import os
import signal
from collections import Counter
from typing import Any

import pytest

from tests.end_to_end.dagster_server import IN_PROCESS, MULTIPROCESS, RECORDS, DagsterServer
from tests.end_to_end.going_on import HELD, UNDISTURBED
from tests.end_to_end.rows import row
from tests.faults.cases import cases

NODES = ("first", "second", "third")


def interrupted_in_second(server: DagsterServer, name: str, config: dict) -> str:
    """Launch everything and return the run when a third of the second operator is done."""
    server.pace(f"{name}_second", 0.05, held=HELD)
    run = server.launch_assets(*((name, node) for node in NODES), config=config)
    server.wait_for_calls(f"{name}_second", RECORDS // 3)
    return run


def calls_of(server: DagsterServer, name: str, node: str) -> Counter[int]:
    return Counter(call.record for call in server.calls(f"{name}_{node}"))


WAYS = [
    pytest.param("whole_0", "FROM_FAILURE", IN_PROCESS, id="failure"),
    pytest.param("whole_3", "FROM_ASSET_FAILURE", MULTIPROCESS, id="asset_failure-multiprocess"),
    pytest.param("whole_1", "FROM_FAILURE", MULTIPROCESS, id="failure-multiprocess"),
    pytest.param("whole_2", "FROM_ASSET_FAILURE", IN_PROCESS, id="asset_failure"),
]


@pytest.mark.parametrize(("name", "strategy", "config"), cases(WAYS[:2], campaign=WAYS))
@row
def test_a_re_executed_step_repeats_no_finished_call(
    server: DagsterServer, record: Any, name: str, strategy: str, config: dict
) -> None:
    run = interrupted_in_second(server, name, config)
    assert server.materialized(run) == ["first"]
    os.kill(server.calls(f"{name}_second")[0].process, signal.SIGKILL)
    server.finish(run, "FAILURE")

    server.pace(f"{name}_second", 0.0)
    again = server.reexecute(run, strategy)
    server.finish(again, "SUCCESS")
    made_again = [] if strategy == "FROM_ASSET_FAILURE" else ["first"]  # reported, not run
    assert server.materialized(again) == [*made_again, "second", "third"]
    assert ("already finished by run" in server.log(again)) == bool(made_again)
    assert set(calls_of(server, name, "first").values()) == {1}
    assert set(calls_of(server, name, "third").values()) == {1}
    second = calls_of(server, name, "second")
    assert set(second) == set(range(RECORDS))
    assert second.total() - RECORDS <= 8 + 20  # in flight, and finished in the last second
    record("done_twice", second.total() - RECORDS)
    for node in NODES:
        assert server.result(name, node) == UNDISTURBED


@row
def test_a_terminated_step_ends_as_canceled_and_resumes_later(
    server: DagsterServer, record: Any
) -> None:
    name = "whole_4"
    run = interrupted_in_second(server, name, IN_PROCESS)
    server.terminate(run)
    server.finish(run, "CANCELED")

    server.pace(f"{name}_second", 0.0)
    again = server.reexecute(run, "FROM_ASSET_FAILURE")
    server.finish(again, "SUCCESS")
    assert server.materialized(again) == ["second", "third"]
    assert "resuming:" in server.log(again)
    assert set(calls_of(server, name, "first").values()) == {1}
    assert server.result(name, "third") == UNDISTURBED

"""One step for a whole pipeline, killed and terminated in its middle, and re-executed."""

import os
import signal
from collections import Counter

import orjson
import pytest

from tests.end_to_end.dagster_server import (
    IN_PROCESS,
    MULTIPROCESS,
    RECORDS,
    DagsterServer,
    until,
)

NODES = ("first", "second", "third")
KEYS = [("whole", node) for node in NODES]
UNDISTURBED = b"".join(
    orjson.dumps(row | {"text": row["text"].upper()}) + b"\n" for row in DagsterServer.source()
)


def interrupted_in_second(server: DagsterServer, config: dict) -> str:
    """Launch everything and return the run when a third of the second operator is done."""
    for node in NODES:
        (server.home / f"whole_{node}.calls").unlink(missing_ok=True)
    server.pace("whole_first", 0.0)
    server.pace("whole_second", 0.05)
    run = server.launch_assets(*KEYS, config=config)
    server.wait_for_calls("whole_second", RECORDS // 3)
    return run


def calls_of(server: DagsterServer, node: str) -> Counter[int]:
    return Counter(call.record for call in server.calls(f"whole_{node}"))


@pytest.mark.parametrize("config", [IN_PROCESS, MULTIPROCESS], ids=["in_process", "multiprocess"])
@pytest.mark.parametrize("strategy", ["FROM_FAILURE", "FROM_ASSET_FAILURE"])
def test_a_killed_step_that_is_re_executed_pays_for_nothing_twice(
    server: DagsterServer, strategy: str, config: dict
) -> None:
    run = interrupted_in_second(server, config)
    assert server.materialized(run) == ["first"]
    os.kill(server.calls("whole_second")[0].process, signal.SIGKILL)
    server.finish(run, "FAILURE")

    server.pace("whole_second", 0.0)
    again = server.reexecute(run, strategy)
    server.finish(again, "SUCCESS")
    made_again = [] if strategy == "FROM_ASSET_FAILURE" else ["first"]  # told of, not run
    assert server.materialized(again) == [*made_again, "second", "third"]
    assert ("already finished by run" in server.log(again)) == bool(made_again)
    assert set(calls_of(server, "first").values()) == {1}
    assert set(calls_of(server, "third").values()) == {1}
    second = calls_of(server, "second")
    assert set(second) == set(range(RECORDS))
    assert second.total() - RECORDS <= 8 + 20  # in flight, and finished in the last second
    for node in NODES:
        assert server.result("whole", node) == UNDISTURBED


def test_a_terminated_step_leaves_as_canceled_and_goes_on_from_there(
    server: DagsterServer,
) -> None:
    run = interrupted_in_second(server, IN_PROCESS)
    server.terminate(run)
    until(lambda: server.status(run) == "CANCELED", "the end of the terminated run", 20.0)

    server.pace("whole_second", 0.0)
    again = server.reexecute(run, "FROM_ASSET_FAILURE")
    server.finish(again, "SUCCESS")
    assert server.materialized(again) == ["second", "third"]
    assert "resuming:" in server.log(again)
    assert set(calls_of(server, "first").values()) == {1}
    assert server.result("whole", "third") == UNDISTURBED

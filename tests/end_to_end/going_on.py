"""Helpers of the failure table's rows: interrupt a run, and check how the next one resumed."""

import os
import signal
from collections import Counter
from contextlib import suppress
from typing import Any

import orjson
import psutil

from tests.end_to_end.dagster_server import IN_PROCESS, RECORDS, Call, DagsterServer, until
from tests.faults.crashing import slowness

UNDISTURBED = b"".join(
    orjson.dumps(row | {"text": row["text"].upper()}) + b"\n" for row in DagsterServer.source()
)
UNSETTLED_SECONDS = 0.6  # seconds; the longest time for which a finished record may not be settled
HELD = 2 * RECORDS // 3  # the first record that an interrupted run cannot finish
BETWEEN_POSITIONS = 60  # items of a stream, at the pace of these tests: those of a second


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def interrupted(
    server: DagsterServer,
    node: str,
    config: dict[str, Any] = IN_PROCESS,
    seconds: float = 0.05,
    workers: int = 1,
    **tags: str,
) -> str:
    """Launch a slow run and return it when a third of its records has been processed.

    A call of each of its worker processes has been seen then.

    It cannot end before the test sets another pace, because its last records are held.
    """
    server.pace(node, seconds, held=HELD)
    run = server.launch(node, "shout", config=config, **tags)
    server.wait_for_calls(node, RECORDS // 3)

    def all_seen() -> bool:
        return len({call.process for call in server.calls(node)}) >= workers

    until(all_seen, f"a call of each of {workers} workers of {node}")
    return run


def step_of(call: Call) -> int:
    """Return the step's process for a call: the caller, or the ancestor of its worker.

    Between a worker and its step there is the small process that forks the workers.
    """
    process = psutil.Process(call.process)
    while any("dagster_dataops.execution." in argument for argument in process.cmdline()):
        process = psutil.Process(process.ppid())
    return process.pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def wait_until_no_run_is_left(server: DagsterServer) -> None:
    """Wait until no step and no worker process of the server's runs is alive."""

    def left() -> list[str]:
        commands = []
        for process in server.processes():
            with suppress(psutil.Error):  # it has ended since it was listed
                commands.append(" ".join(process.cmdline()))
        return [c for c in commands if "execution.worker" in c or "execute_" in c]

    until(lambda: not left(), "the end of all steps and workers", pause=0.5)


def check_went_on(
    server: DagsterServer, node: str, run: str, before: list[Call], in_flight: int = 32
) -> int:
    """Check that the result is that of an undisturbed run, and that few records were done twice.

    Return the number of records that were done twice.
    """
    assert server.result(node) == UNDISTURBED
    calls = server.calls(node)
    times = Counter(call.record for call in calls)
    assert set(times) == set(range(RECORDS))
    assert max(times.values()) <= 2

    last = max(call.time for call in before)
    unsettled = sum(call.time > last - UNSETTLED_SECONDS * slowness() for call in before)
    assert len(calls) - RECORDS <= in_flight + unsettled

    manifest = server.manifest(node)
    assert manifest["resumed"] == RECORDS - (len(calls) - len(before))
    if manifest["resumed"]:
        assert f"resuming: {manifest['resumed']} " in server.log(run)
        assert manifest["resumed_from"] == list(dict.fromkeys(manifest["attempts"][:-1]))
    return len(calls) - RECORDS

"""Runs that are stopped while calls are in flight: with a drain, no call is made twice."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.execution.helpers import lines, write_input
from tests.faults.crashing import HANG_SECONDS, Script, alive_in_session, wait_until
from tests.faults.warm_starts import StartedProcess
from tests.subprocesses import killed_at_exit

pytestmark = pytest.mark.slow

_RECORDS = 60
_CODE = """
if sys.argv[1] == "spawned":  # a second thread forbids forking
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()


def seconds():
    return 0.0 if (HOME / "quick").exists() else 0.6

@data_register("data.drained")
def work(record):
    log("calls.log", record["n"])
    time.sleep(seconds())
    return record

@data_register("data.drained")
async def work_async(record):
    log("calls.log", record["n"])
    await asyncio.sleep(seconds())
    return record

@data_register("data.drained", rewrite_func="forward_batch", _batch_size=4)
def work_batch(records):
    for record in records:
        log("calls.log", record["n"])
    time.sleep(seconds())
    return records

if __name__ == "__main__":
    mode = "process" if sys.argv[1] == "spawned" else sys.argv[1]
    operator = {"async": work_async, "batch": work_batch}.get(mode, work)
    mode = "process" if mode == "batch" else mode
    run(operator(_concurrency_mode=mode, _max_workers=4, _drain_seconds=float(sys.argv[2])))
"""


def _interrupt(script: Script, process: StartedProcess) -> None:
    os.kill(process.pid, signal.SIGINT)
    process.wait(HANG_SECONDS)
    wait_until(lambda: not alive_in_session(process.pid), 5, "nothing is left")
    assert not (script.folder / "node" / "node_results.jsonl").exists()


@pytest.mark.parametrize("mode", ["process", "spawned", "batch", "thread", "async"])
def test_calls_in_flight_are_waited_for_and_settled(tmp_path: Path, mode: str) -> None:
    records = [{"n": n} for n in range(_RECORDS)]
    write_input(tmp_path / "input.jsonl", records)
    script = Script(tmp_path, _CODE)
    with killed_at_exit(script.start(mode, "60")) as process:
        script.wait_for("calls.log", 8, HANG_SECONDS)
        _interrupt(script, process)
    assert len(script.log("calls.log")) < _RECORDS
    (tmp_path / "quick").touch()
    script.finish(mode, "60")
    assert (tmp_path / "node" / "node_results.jsonl").read_bytes() == lines(records)
    calls = Counter(int(number) for _, number in script.log("calls.log"))
    assert calls == dict.fromkeys(range(_RECORDS), 1)


def test_a_drain_ends_in_time_although_calls_go_on(tmp_path: Path) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_RECORDS)])
    code = _CODE.replace("0.6", "3600.0")
    script = Script(tmp_path, code)
    with killed_at_exit(script.start("process", "0.5")) as process:
        script.wait_for("calls.log", 1, HANG_SECONDS)
        began = time.monotonic()
        _interrupt(script, process)
        assert time.monotonic() - began < HANG_SECONDS / 2
    (tmp_path / "quick").touch()
    script.finish("process", "0.5")
    assert {int(number) for _, number in script.log("calls.log")} == set(range(_RECORDS))

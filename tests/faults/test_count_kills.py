"""Counts and drops after kills at random instants, compared with a log that operators write."""

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from dagster_dataops.checkpoints.folder.manifest import Manifest
from tests.execution.helpers import node, write_input
from tests.faults.cases import cases
from tests.faults.crashing import HANG_SECONDS, Script, alive_in_session, wait_until
from tests.subprocesses import killed_at_exit

pytestmark = pytest.mark.slow

_KILLS = cases(2, campaign=100)  # of one mode
_RECORDS = 400
_CODE = """
from dagster_dataops import OperatorContext

def counted(record, context):
    tokens = record["n"] % 17 + 1
    log("calls.log", f"{record['n']} {tokens}")
    context.count(tokens=tokens, cost=tokens / 8)
    if record["n"] % 10 == 3:
        return context.drop("three")
    if record["n"] % 10 == 4:
        raise ValueError("four")
    return record

@data_register("data.counted")
def ask(record, context: OperatorContext):
    time.sleep(0.003)
    return counted(record, context)

@data_register("data.counted")
async def ask_async(record, context: OperatorContext):
    await asyncio.sleep(0.003)
    return counted(record, context)

@data_register("data.counted", rewrite_func="forward_batch", _batch_size=8)
def ask_batch(records, context: OperatorContext):
    time.sleep(0.01)
    found = []
    for record in records:
        try:
            found.append(counted(record, context))
        except ValueError as error:
            found.append(error)
    return found

if __name__ == "__main__":
    mode = sys.argv[1]
    operator = {"async": ask_async, "batch": ask_batch}.get(mode, ask)
    mode = "process" if mode == "batch" else mode
    run(operator(_concurrency_mode=mode, _max_workers=4, _stop_after_failures=0))
"""


@pytest.mark.parametrize("mode", ["single", "thread", "async", "process", "batch"])
def test_counts_are_those_of_the_calls_whose_outcomes_stayed(tmp_path: Path, mode: str) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_RECORDS)])
    script = Script(tmp_path, _CODE)
    chance = random.Random(f"{mode} {_KILLS}")
    killed = 0
    while killed < _KILLS:
        killed += _killed(script, mode, chance)
        if node(tmp_path).manifest.exists():
            _check(script)
            shutil.rmtree(tmp_path / "node")
            (tmp_path / "calls.log").unlink()
    script.finish(mode)
    _check(script)


def _killed(script: Script, mode: str, chance: random.Random) -> bool:
    """Run for a while; return whether the run was killed."""
    before = len(script.log("calls.log"))
    with killed_at_exit(script.start(mode)) as process:
        wait_until(
            lambda: process.poll() is not None or len(script.log("calls.log")) > before,
            HANG_SECONDS,
            "a call",
        )
        time.sleep(chance.uniform(0, 0.25))
        killed = process.poll() is None
        if killed:
            os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(HANG_SECONDS) in {0, -9}, script.output()
        wait_until(lambda: not alive_in_session(process.pid), 10, "its end")
    return killed


def _check(script: Script) -> None:
    calls = {int(entry[1]): int(entry[2]) for entry in script.log("calls.log")}
    manifest = Manifest.load(node(script.folder).manifest)
    assert manifest is not None
    assert len(calls) == _RECORDS
    assert manifest.counts == {"tokens": sum(calls.values()), "cost": sum(calls.values()) / 8}
    assert manifest.drops == {"three": _RECORDS // 10}
    assert manifest.failed == _RECORDS // 10

"""Operators with named outputs, killed at random instants in every mode."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from tests.execution.helpers import lines, write_input
from tests.execution.splitting import OUTPUTS, check_manifests, splits, written
from tests.faults.cases import cases
from tests.faults.crashing import Script
from tests.subprocesses import killed_at_exit

_CODE = """
from dagster_dataops import To

def _sent(record):
    number = record["n"]
    if number % 10 == 3:
        raise ValueError("three")
    if number % 7 == 0:
        return []
    if number % 5 == 0:
        return [To("test"), To("train", {"n": number, "again": True})]
    return To("train" if number % 2 else "test")

@data_register("data.killed", outputs=("train", "test"))
def send(record):
    log("sent", record["n"])
    time.sleep(0.01)
    return _sent(record)

@data_register("data.killed", outputs=("train", "test"))
async def send_async(record):
    log("sent", record["n"])
    await asyncio.sleep(0.01)
    return _sent(record)

if __name__ == "__main__":
    operator = send_async if sys.argv[1] == "async" else send
    report = run(operator(_concurrency_mode=sys.argv[1], _max_workers=4))
    print(*report.notes)
"""
_RECORDS = 300
_DAGSTER_KILLS = cases(2, campaign=20)  # of one mode
_MODES = ["process", "thread", "async", "single"]


def _expected() -> dict[str, bytes]:
    found: dict[str, list[object]] = {"train": [], "test": []}
    for number in range(_RECORDS):
        if number % 10 == 3 or number % 7 == 0:
            continue
        if number % 5 == 0:
            found["test"].append({"n": number})
            found["train"].append({"n": number, "again": True})
        else:
            found["train" if number % 2 else "test"].append({"n": number})
    return {name: lines(rows) for name, rows in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("mode", _MODES)
def test_kills_at_random_instants_leave_no_line_out_and_none_twice(
    tmp_path: Path, mode: str
) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_RECORDS)])
    script = Script(tmp_path, _CODE)
    chance = random.Random(mode)
    folder = splits(tmp_path)
    for _ in range(4):
        before = len(script.log("sent"))
        with killed_at_exit(script.start(mode)) as process:
            if before < _RECORDS:
                script.wait_for("sent", before + 1)
            time.sleep(chance.uniform(0, 0.4))
            os.killpg(process.pid, signal.SIGKILL)
        check_manifests(folder)
    script.finish(mode)
    assert written(folder) == _expected()
    called = Counter(number for _, number in script.log("sent"))
    assert len(called) == _RECORDS
    assert folder.errors.read_bytes().count(b"\n") == _RECORDS // 10
    assert not folder.checkpoints.exists()


_DAGSTER = """
import dagster as dg
from dagster_dataops import DataOpsResource, build_definitions, combine, pipeline

@data_register("data.killed", _concurrency_mode="thread", _max_workers=4)
def mark(record):
    log("marked", record["n"])
    time.sleep(0.005)
    record["marked"] = True

if __name__ == "__main__":
    with pipeline("docs") as ppl:
        operator = send_async if sys.argv[1] == "async" else send
        ppl.split = operator(_concurrency_mode=sys.argv[1], _max_workers=4)
        ppl.add("marked", mark(), inputs=ppl.split.train)
        ppl.both = combine.concat([ppl.marked, ppl.split.test])
    resource = DataOpsResource(root=str(HOME / "root"), lock_seconds=10)
    definitions = build_definitions(ppl, source=HOME / "input.jsonl", resource=resource)
    (HOME / "instance").mkdir(exist_ok=True)
    with dg.DagsterInstance.local_temp(str(HOME / "instance")) as instance:
        log("begun")
        job = definitions.resolve_job_def("docs_pipeline")
        assert job.execute_in_process(instance=instance).success
        for output in ("train", "test"):
            key = dg.AssetKey(["docs", "split", output])
            assert instance.get_latest_materialization_event(key) is not None
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["process", "async"])
def test_runs_of_dagster_killed_at_random_instants_go_on_and_finish(
    tmp_path: Path, mode: str
) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_RECORDS)])
    operators = _CODE.partition("if __name__")[0]
    script = Script(tmp_path, operators + _DAGSTER, "dagster", "dagster_dataops.assets.definitions")
    chance = random.Random(mode)
    folder = NodeFolder(tmp_path / "root" / "docs" / "split", "split").with_outputs(OUTPUTS)
    for number in range(_DAGSTER_KILLS):
        with killed_at_exit(script.start(mode)) as process:
            script.wait_for("begun", number + 1)
            time.sleep(chance.uniform(0.3, 2.5))
            os.killpg(process.pid, signal.SIGKILL)
        check_manifests(folder)
    script.finish(mode)
    expected = _expected()
    assert written(folder) == expected
    both = tmp_path / "root" / "docs" / "both" / "both_results.jsonl"
    train = expected["train"].replace(b"}", b',"marked":true}')
    assert both.read_bytes() == train + expected["test"]
    called = Counter(number for _, number in script.log("sent"))
    assert len(called) == _RECORDS

"""Chains killed at random instants: result, funnel and counts are those of an undisturbed run."""

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.checkpoints.folder.manifest import Manifest
from tests.execution.helpers import lines, node
from tests.faults.cases import cases
from tests.faults.crashing import HANG_SECONDS, Script, alive_in_session, wait_until
from tests.operators.chain_parts import funnel_of
from tests.subprocesses import killed_at_exit

pytestmark = pytest.mark.slow

_KILLS = cases(2, campaign=100)  # of one mode
_SCRIPT = """
from dagster_dataops import Drop, OperatorContext, chain

data_register.new_group("kills")

def acted(record, part):
    match record["do"][part]:
        case "split":
            return [record, record, dict(record)]
        case "drop":
            return Drop("unwanted")
        case "fail":
            raise ValueError(part)
    return record

@data_register("data.kills")
def first(record, context: OperatorContext):
    log("asked", record["n"])
    context.count(asked=1)
    return acted(record, 0)

@data_register("data.kills")
def second(record):
    time.sleep(0.004)
    return acted(record, 1)

@data_register("data.kills", rewrite_func="forward_batch")
def second_batch(records):
    time.sleep(0.004 * len(records))
    return [acted(record, 1) for record in records]

@data_register("data.kills")
def third(record):
    return acted(record, 2)

@data_register("data.kills")
async def third_async(record):
    await asyncio.sleep(0.001)
    return acted(record, 2)

if __name__ == "__main__":
    mode, attempt, retry, batch = sys.argv[1:]
    last = third_async() if mode == "async" else third()
    middle, more = (second_batch(), {"_batch_size": 8}) if batch else (second(), {})
    settings = {"_concurrency_mode": mode, "_max_workers": 3, "_timeout": 60, **more}
    made = chain(first(), middle, last, **settings)
    run(made, attempt, ResumePolicy.FAILED_RECORDS if retry == "retry" else ResumePolicy.AUTO)
"""


def _records(chance: random.Random, count: int) -> list[dict[str, Any]]:
    kinds = ["keep"] * 6 + ["split", "drop", "fail"]
    return [{"n": n, "do": chance.choices(kinds, k=3)} for n in range(count)]


@pytest.mark.parametrize("batch", ["", "batch"])
@pytest.mark.parametrize("mode", ["single", "thread", "async", "process"])
def test_the_funnel_is_exact_under_kills(tmp_path: Path, mode: str, batch: str) -> None:
    chance = random.Random(f"{mode}{_KILLS}")
    records = _records(chance, 400)
    (tmp_path / "input.jsonl").write_bytes(lines(records))
    script = Script(tmp_path, _SCRIPT)
    killed = number = 0
    while killed < _KILLS:
        number += 1
        retry = "retry" if number % 2 else ""
        killed += _killed(tmp_path, script, chance, mode, f"attempt-{number}", retry, batch)
        if node(tmp_path).manifest.exists():
            _check(tmp_path, mode, records, batch)
            for path in sorted(tmp_path.glob("node/**/*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
    script.finish(mode, "last", "", batch)
    _check(tmp_path, mode, records, batch)


def _killed(folder: Path, script: Script, chance: random.Random, *arguments: str) -> bool:
    """Run for a while; return whether the run was killed."""
    log = folder / "asked"
    asked = log.stat().st_size if log.exists() else 0
    with killed_at_exit(script.start(*arguments)) as process:
        wait_until(
            lambda: process.poll() is not None or (log.exists() and log.stat().st_size > asked),
            HANG_SECONDS,
            "a call",
        )
        time.sleep(chance.uniform(0, 1.0))
        killed = process.poll() is None
        if killed:
            os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(HANG_SECONDS) in {0, -9}, script.output()
        wait_until(lambda: not alive_in_session(process.pid), 10, "its end")
    return killed


def _check(folder: Path, mode: str, records: list[dict[str, Any]], batch: str) -> None:
    manifest = Manifest.load(node(folder).manifest)
    assert manifest is not None
    names = [
        "first",
        "second_batch" if batch else "second",
        "third_async" if mode == "async" else "third",
    ]
    found = [{key: row[key] for key in row if key != "seconds"} for row in manifest.funnel]
    assert found == funnel_of(records, 3, names)
    wanted = []
    for record in records:
        number = 1
        for action in record["do"]:
            number *= {"split": 3, "drop": 0, "fail": 0}.get(action, 1)
        wanted += [record] * number
    assert node(folder).result.read_bytes() == lines(wanted)
    parts = {
        row["input"]["n"]: row["part"]
        for row in map(json.loads, node(folder).errors.read_text().splitlines())
    }
    assert parts == {
        record["n"]: names[_failing(record)] for record in records if _failing(record) >= 0
    }
    assert manifest.counts["asked"] >= len(records)


def _failing(record: dict[str, Any]) -> int:
    """Return the part in which a record fails; -1 if in none."""
    for part, action in enumerate(record["do"]):
        if action == "fail":
            return part
        if action == "drop":
            return -1
    return -1

"""Tests that finished calls are not repeated after a SIGKILL, except by process workers."""

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.records import decode
from tests.execution.helpers import lines, node, run_over, write_input
from tests.faults.crashing import Script
from tests.journals import content_interval, iterate_lines
from tests.nodes import CheckpointContent
from tests.subprocesses import killed_at_exit

pytestmark = pytest.mark.slow

_RECORDS: Final = 240
_WORKERS: Final = 8
_KILLS: Final = 3
_MODES: Final = ("thread", "async", "single")

_CALLS = """
@data_register("data.script")
def call(record):
    log("calls.log", f"{threading.get_ident()} begins {record['n']}")
    time.sleep(0.02)
    log("calls.log", f"{threading.get_ident()} ends {record['n']}")
    return {"n": record["n"]}

@data_register("data.script")
async def call_async(record):
    log("calls.log", f"{id(asyncio.current_task())} begins {record['n']}")
    await asyncio.sleep(0.02)
    log("calls.log", f"{id(asyncio.current_task())} ends {record['n']}")
    return {"n": record["n"]}

mode = sys.argv[1]
operator = data.script.call_async if mode == "async" else data.script.call
run(operator(_concurrency_mode=mode, _max_workers=8))
"""


def _settled(home: Path) -> set[int]:
    """Return the settled records of the journal on disk."""
    table = CheckpointContent.read(node(home).checkpoints / "1").table
    path = home / "input.jsonl"
    with path.open("rb") as file:
        gaps = table.gaps(content_interval(path))
        open_ = {decode(line.text)["n"] for line in iterate_lines(file.fileno(), gaps)}
        everything = iterate_lines(file.fileno(), [content_interval(path)])
        return {decode(line.text)["n"] for line in everything} - open_


@pytest.mark.parametrize("mode", _MODES)
def test_a_kill_repeats_no_call_whose_worker_had_begun_the_next(tmp_path: Path, mode: str) -> None:
    chance = random.Random(mode)
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_RECORDS)])
    script = Script(tmp_path, _CALLS)
    for number in range(_KILLS):
        target = len(script.log("calls.log")) + chance.randint(20, 2 * _RECORDS // _KILLS - 20)
        before = len(script.log("calls.log"))
        with killed_at_exit(script.start(mode)) as process:
            script.wait_for("calls.log", target, 600)
            time.sleep(chance.uniform(0, 0.02))  # at any moment of a call
            process.kill()
            assert process.wait() == -signal.SIGKILL, number
        latest: dict[str, str] = {}
        finished = set()
        for _, worker, what, record in script.log("calls.log")[before:]:
            if what == "begins" and worker in latest:
                finished.add(int(latest.pop(worker)))
            elif what == "ends":
                latest[worker] = record
        assert finished
        assert finished <= _settled(tmp_path)
    script.finish(mode, seconds=600)
    assert node(tmp_path).result.read_bytes() == dataset.path.read_bytes()
    ended = Counter(entry[3] for entry in script.log("calls.log") if entry[2] == "ends")
    workers = 1 if mode == "single" else _WORKERS
    assert ended.total() - _RECORDS <= _KILLS * workers


_HOME = "SETTLED_BEFORE"
_latest = threading.local()


def _check_the_one_before(record: dict[str, int], before: int | None) -> dict[str, int]:
    settled = _settled(Path(os.environ[_HOME]))
    return {"n": record["n"], "lost": before is not None and before not in settled}


@data_register("data.finished")
def looks_back(record):
    before = getattr(_latest, "record", None)
    made = _check_the_one_before(record, before)
    time.sleep(0.02)
    _latest.record = record["n"]
    return made


@data_register("data.finished")
async def looks_back_async(record):
    import asyncio

    task = asyncio.current_task()
    made = _check_the_one_before(record, getattr(_latest, "tasks", {}).get(task))
    await asyncio.sleep(0.02)
    _latest.tasks = {**getattr(_latest, "tasks", {}), task: record["n"]}
    return made


@pytest.mark.parametrize("mode", _MODES)
def test_a_finished_record_is_in_the_journal_before_its_worker_begins_the_next(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_HOME, str(tmp_path))
    operator = looks_back_async if mode == "async" else looks_back
    run_over(
        tmp_path,
        operator(_concurrency_mode=mode, _max_workers=_WORKERS),
        [{"n": n} for n in range(60)],
    )
    assert node(tmp_path).result.read_bytes() == lines({"n": n, "lost": False} for n in range(60))

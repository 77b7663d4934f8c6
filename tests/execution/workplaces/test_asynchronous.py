import asyncio
import threading
from pathlib import Path

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import RecordError
from tests.execution.helpers import error_rows, lines, node, run, run_over, write_input
from tests.faults.crashing import HANG_SECONDS
from tests.nodes import ResumePolicy

_GROUP = "data.async_tests"


def test_a_thousand_calls_are_in_flight_at_once(tmp_path: Path) -> None:
    waiting = []

    @data_register(_GROUP, _max_workers=1000)
    async def meet(record):
        waiting.append(record)
        while len(waiting) < 1000:
            await asyncio.sleep(0.01)

    run_over(tmp_path, meet(), [{"n": n} for n in range(1000)])
    assert not error_rows(node(tmp_path))


def test_it_runs_where_a_loop_is_running_already(tmp_path: Path) -> None:
    @data_register(_GROUP)
    async def plain(record):
        return record

    async def notebook() -> None:
        run_over(tmp_path, plain(), [{"n": 1}] * 10)

    asyncio.run(notebook())
    assert node(tmp_path).result.read_bytes() == lines([{"n": 1}] * 10)


def test_a_failure_ends_the_step_and_cancels_calls_in_flight(tmp_path: Path) -> None:
    cancelled = threading.Semaphore(0)

    @data_register(_GROUP, _max_workers=5, _drain_seconds=0)
    async def one_fails(record):
        if record["n"] == 2:
            await asyncio.sleep(0.1)
            raise ValueError("two")
        if record["n"] > 2:
            try:
                await asyncio.sleep(3600)
            finally:
                cancelled.release()
        return record

    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(10)])
    with pytest.raises(RecordError, match="record 2 .*ValueError: two"):
        run(one_fails(_ignore_errors=False), dataset, node(tmp_path))
    for _ in range(4):
        assert cancelled.acquire(timeout=HANG_SECONDS)

    @data_register(_GROUP, _max_workers=5)
    async def fixed(record):
        return record

    fixed.operator.__dataops_spec__.__dict__["name"] = "one_fails"
    report = run(fixed(), dataset, node(tmp_path), resume=ResumePolicy.ACROSS_CODE)
    assert report.manifest.resumed == 2
    assert node(tmp_path).result.read_bytes() == lines({"n": n} for n in range(10))

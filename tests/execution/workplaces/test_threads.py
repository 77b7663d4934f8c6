import threading
from pathlib import Path

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.errors import RecordError
from tests.execution.helpers import (
    error_rows,
    lines,
    node,
    operator_for,
    plan,
    run,
    run_over,
    write_input,
)
from tests.faults.crashing import HANG_SECONDS
from tests.nodes import ResumePolicy

_GROUP = "data.thread_tests"


def test_as_many_calls_are_in_flight_as_there_are_workers(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)

    @data_register(_GROUP, _concurrency_mode="thread", _max_workers=8)
    def meet(record):
        barrier.wait(HANG_SECONDS)

    run(
        meet(), write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(16)]), node(tmp_path)
    )
    assert not error_rows(node(tmp_path))


def test_slow_calls_after_quick_ones_are_made_by_all_threads(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)

    @data_register(_GROUP, _concurrency_mode="thread", _max_workers=8)
    def meet_at_the_end(record):
        if record["n"] >= 200:
            barrier.wait(HANG_SECONDS)

    records = [{"n": n} for n in range(208)]
    run(meet_at_the_end(), write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    assert not error_rows(node(tmp_path))


def test_a_slow_call_delays_no_other_call(tmp_path: Path) -> None:
    others_done = threading.Semaphore(0)

    @data_register(_GROUP, _concurrency_mode="thread", _max_workers=2)
    def first_waits_for_all(record):
        if record["n"]:
            others_done.release()
        else:
            for _ in range(99):
                assert others_done.acquire(timeout=HANG_SECONDS)

    records = [{"n": n} for n in range(100)]
    run(first_waits_for_all(), write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    assert node(tmp_path).result.read_bytes() == lines(records)
    assert not error_rows(node(tmp_path))


def test_the_first_failure_ends_the_step_with_calls_still_in_flight(tmp_path: Path) -> None:
    release, begun = threading.Event(), threading.Semaphore(0)

    @data_register(_GROUP, _concurrency_mode="thread", _max_workers=4, _drain_seconds=0)
    def one_fails(record, fixed=False):
        if record["n"] == 3:
            for _ in range(3):  # by workers that have settled the earlier records
                begun.acquire()
            raise ValueError("three")
        if record["n"] > 3:
            begun.release()
            release.wait(HANG_SECONDS)
        return record

    records = [{"n": n} for n in range(10)]
    dataset = write_input(tmp_path / "input.jsonl", records)
    before = set(threading.enumerate())
    with pytest.raises(RecordError, match="record 3 .*line 4.*ValueError: three") as caught:
        run(one_fails(_ignore_errors=False), dataset, node(tmp_path))
    assert isinstance(caught.value.__cause__, ValueError)
    release.set()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    report = run(one_fails(), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == 3
    assert [row["index"] for row in error_rows(node(tmp_path))] == [3]


def test_operators_own_the_record_they_are_given(tmp_path: Path) -> None:
    @data_register(_GROUP, _concurrency_mode="thread", _max_workers=4)
    def spoils(record):
        record.clear()

    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}] * 4)
    before = dataset.path.read_bytes()
    run(spoils(), dataset, node(tmp_path))
    assert dataset.path.read_bytes() == before
    assert node(tmp_path).result.read_bytes() == b"{}\n" * 4


@pytest.mark.parametrize("mode", ["thread", "async"])
def test_no_thread_is_left_after_a_run(tmp_path: Path, mode: str) -> None:
    before = set(threading.enumerate())
    run_over(tmp_path, operator_for(mode, 16), plan(["keep"] * 40))
    assert set(threading.enumerate()) <= before

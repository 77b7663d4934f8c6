import math
import threading
from pathlib import Path

import pytest

from dagster_dataops.checkpoints.checkpoint import CheckpointContent
from dagster_dataops.concurrency.waitable_thread import WaitableThread
from dagster_dataops.datasets.lines import Line
from dagster_dataops.errors import StorageError
from dagster_dataops.execution.backends import collector
from dagster_dataops.execution.backends.collector import Collector
from dagster_dataops.execution.records.record_failures import Failure, Outcome
from dagster_dataops.execution.records.span_draft import Finished
from tests.execution.helpers import act, job_for, node, settled_output, write_input


@pytest.fixture
def job(tmp_path: Path):
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(10)])
    made = job_for(act(), dataset, node(tmp_path))
    yield made
    made.checkpoint.close()


def _put(collector: Collector, lines: list[Line], outcome: Outcome) -> None:
    collector.put([Finished(line, outcome) for line in lines])


@pytest.fixture
def deferring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave settling to the main thread."""
    monkeypatch.setattr(collector, "_BURST_SECONDS", -math.inf)


def test_records_finished_in_any_order_are_settled_in_input_order(job, deferring) -> None:
    collector = Collector(job)
    lines = [collector.take() for _ in range(10)]
    assert collector.take() == []
    for number in (3, 1, 2, 9, 0):
        _put(collector, lines[number], b"%d\n" % number)
    collector.drain()
    spans = [(span.start, span.records) for span, _, _ in job.checkpoint.table.ordered()]
    assert spans == [(0, 4), (lines[9][0].start, 1)]
    assert b"".join(settled_output(job)) == b"0\n1\n2\n3\n9\n"
    collector.watch([])
    collector.close()


def test_failures_and_dropped_records_are_counted(job, deferring) -> None:
    collector = Collector(job)
    lines = [collector.take() for _ in range(3)]
    _put(collector, lines[0], b"")
    _put(collector, lines[1], Failure("E", "m", ""))
    _put(collector, lines[2], b"2\n")
    collector.watch([])
    collector.close()
    ((span, _, _),) = job.checkpoint.table.ordered()
    assert (span.records, span.dropped, span.failed) == (3, 1, 1)


def journalled(job) -> int:
    """Return the number of settled records in the journal on disk."""
    return CheckpointContent.read(job.checkpoint.folder).table.records


def test_a_worker_settles_its_finished_record_first(job) -> None:
    collector = Collector(job)
    for number in range(1, 11):
        _put(collector, collector.take(), b"x\n")
        assert journalled(job) == number
    collector.watch([])
    collector.close()


def test_records_that_finish_faster_than_drains_are_due_are_settled_together(
    job, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100
    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr(collector, "_PERIOD_SECONDS", 1)
    monkeypatch.setattr(collector, "_BURST_SECONDS", 1)
    tested = Collector(job)
    seen = []
    for now in (100, 100, 100, 100, 101, 101, 101, 105, 105, 105):  # noqa: B007 - the clock's
        _put(tested, tested.take(), b"x\n")
        seen.append(journalled(job))
    assert seen == [1, 2, 2, 2, 5, 5, 5, 8, 9, 9]
    tested.watch([])
    tested.close()
    assert journalled(job) == 10


def test_a_failed_drain_keeps_its_unsettled_records(
    job, deferring, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = Collector(job)
    lines = [collector.take() for _ in range(2)]
    for line in lines:
        _put(collector, line, b"x\n")

    def full(*_: object) -> None:
        raise StorageError("segment", "write", "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StorageError):
        patch.setattr(job.checkpoint, "settle", full)
        collector.drain()
    collector.watch([])
    collector.close()
    assert job.checkpoint.table.records == 2
    assert b"".join(settled_output(job)) == b"x\nx\n"


def test_calls_that_finish_after_the_end_are_not_settled(job) -> None:
    collector = Collector(job)
    line = collector.take()
    collector.watch([])
    _put(collector, line, b"late\n")
    collector.drain()
    collector.close()
    assert job.checkpoint.table.records == 0


def test_a_fault_stops_the_run_without_waiting_for_calls_in_flight(job) -> None:
    collector = Collector(job)
    release = threading.Event()
    thread = WaitableThread(release.wait, "work")
    thread.start()
    collector.fail(MemoryError("ours"))
    with pytest.raises(MemoryError, match="ours"):
        collector.watch([thread])
    assert thread.is_alive()
    assert collector.take() == []
    collector.close()
    release.set()
    thread.join()

import math
import threading
from pathlib import Path

import pytest

from dagster_dataops.errors import StorageError
from dagster_dataops.execution.workplaces import collector
from dagster_dataops.execution.workplaces.collector import Collector
from dagster_dataops.foundation.concurrency.waitable_thread import WaitableThread
from tests.execution.engine import Failure, Finished, Outcome
from tests.execution.helpers import act, node, settled_output, sink_for, write_input
from tests.journals import Line
from tests.nodes import CheckpointContent


@pytest.fixture
def sink(tmp_path: Path):
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(10)])
    made = sink_for(act(), dataset, node(tmp_path))
    yield made
    made.checkpoint.close()


def _put(collector: Collector, lines: list[Line], outcome: Outcome) -> None:
    collector.put([Finished(line, outcome) for line in lines])


@pytest.fixture
def deferring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave settling to the main thread."""
    monkeypatch.setattr(collector, "_BURST_SECONDS", -math.inf)


def test_records_finished_in_any_order_are_settled_in_input_order(sink, deferring) -> None:
    collector = Collector(sink.attempt, sink.work, sink)
    lines = [collector.take() for _ in range(10)]
    assert collector.take() == []
    for number in (3, 1, 2, 9, 0):
        _put(collector, lines[number], b"%d\n" % number)
    collector.drain()
    spans = [(span.start, span.records) for span, _, _ in sink.checkpoint.table.ordered()]
    assert spans == [(0, 4), (lines[9][0].start, 1)]
    assert b"".join(settled_output(sink)) == b"0\n1\n2\n3\n9\n"
    collector.watch([])
    collector.close()


def test_failures_and_dropped_records_are_counted(sink, deferring) -> None:
    collector = Collector(sink.attempt, sink.work, sink)
    lines = [collector.take() for _ in range(3)]
    _put(collector, lines[0], b"")
    _put(collector, lines[1], Failure("E", "m", ""))
    _put(collector, lines[2], b"2\n")
    collector.watch([])
    collector.close()
    ((span, _, _),) = sink.checkpoint.table.ordered()
    assert (span.records, span.dropped, span.failed) == (3, 1, 1)


def journalled(sink) -> int:
    """Return the number of settled records in the journal on disk."""
    return CheckpointContent.read(sink.checkpoint.folder).table.records


def test_a_worker_settles_its_finished_record_first(sink) -> None:
    collector = Collector(sink.attempt, sink.work, sink)
    for number in range(1, 11):
        _put(collector, collector.take(), b"x\n")
        assert journalled(sink) == number
    collector.watch([])
    collector.close()


def test_records_that_finish_faster_than_drains_are_due_are_settled_together(
    sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100
    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr(collector, "_PERIOD_SECONDS", 1)
    monkeypatch.setattr(collector, "_BURST_SECONDS", 1)
    tested = Collector(sink.attempt, sink.work, sink)
    seen = []
    for now in (100, 100, 100, 100, 101, 101, 101, 105, 105, 105):  # noqa: B007 - the clock's
        _put(tested, tested.take(), b"x\n")
        seen.append(journalled(sink))
    assert seen == [1, 2, 2, 2, 5, 5, 5, 8, 9, 9]
    tested.watch([])
    tested.close()
    assert journalled(sink) == 10


def test_a_failed_drain_keeps_its_unsettled_records(
    sink, deferring, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = Collector(sink.attempt, sink.work, sink)
    lines = [collector.take() for _ in range(2)]
    for line in lines:
        _put(collector, line, b"x\n")

    def full(*_: object) -> None:
        raise StorageError("segment", "write", "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StorageError):
        patch.setattr(sink.checkpoint, "journal", full)
        collector.drain()
    collector.watch([])
    collector.close()
    assert sink.checkpoint.table.records == 2
    assert b"".join(settled_output(sink)) == b"x\nx\n"


def test_calls_that_finish_after_the_end_are_not_settled(sink) -> None:
    collector = Collector(sink.attempt, sink.work, sink)
    line = collector.take()
    collector.watch([])
    _put(collector, line, b"late\n")
    collector.drain()
    collector.close()
    assert sink.checkpoint.table.records == 0


def test_a_fault_stops_the_run_without_waiting_for_calls_in_flight(sink) -> None:
    collector = Collector(sink.attempt, sink.work, sink)
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

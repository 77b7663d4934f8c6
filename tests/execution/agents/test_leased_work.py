"""Tests of the leased parts of an input that an agent works on."""

from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import LocalCluster
from dagster_dataops.checkpoints.journal.sent_pieces import await_room, note_sent
from dagster_dataops.data import data_register
from dagster_dataops.execution.agent_pool import Lease
from dagster_dataops.execution.agents import leased_work
from dagster_dataops.execution.agents.leased_work import LeasedWork, LeaseSink
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.workplaces import Interval
from tests.execution.engine import AgentOrders, receive
from tests.execution.helpers import act, node, plan, sink_for, write_input
from tests.journals import SegmentWriter, Span, content_interval, segment_path


class InBatches(data_register.new_group("leased_batches")):
    def forward_batch(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return records


def _leased(tmp_path: Path, operator: Any) -> LeaseSink:
    dataset = write_input(tmp_path / "input.jsonl", plan(["keep"] * 6))
    head = sink_for(operator, dataset, node(tmp_path))
    order = AgentOrders(head, LocalCluster(agents=1, cpus_per_agent=1)).next()
    return LeaseSink(order, LeasedWork(order, receive(order.operator)))


def test_batches_begin_where_the_leases_say(tmp_path: Path) -> None:
    work = _leased(tmp_path, InBatches(_batch_size=2)).work
    whole = content_interval(work.dataset.path)
    with opened(work.dataset.path) as source:
        starts = work.batch_starts(source)
        assert starts is not None
        assert starts.within(whole) == []
        work.follow(Lease([Interval(40, 80)], [40, 60]))
        work.follow(Lease([Interval(0, 20)], [0]))
        assert work.batch_starts(source) is starts
    assert starts.within(whole) == [0, 40, 60]
    assert work.take_orders().more == [Interval(40, 80), Interval(0, 20)]


def test_an_operator_of_single_records_has_no_batches(tmp_path: Path) -> None:
    work = _leased(tmp_path, act()).work
    work.follow(Lease([Interval(0, 20)], []))
    with opened(work.dataset.path) as source:
        assert work.batch_starts(source) is None


def test_segments_are_synced_before_their_spans_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = _leased(tmp_path, act())
    synced: list[Path] = []
    folders: list[Path] = []
    monkeypatch.setattr(leased_work, "sync_data", synced.append)
    monkeypatch.setattr(leased_work, "sync_folder", folders.append)
    numbers = [sink.take_segment_number() for _ in range(2)]
    for number in numbers:
        SegmentWriter(sink.folder, number).close()
        sink.journal(number, 0, [Span(0, 20, 1, 1, 0, 0, 20, 0, 0, 0)])
    said = sink.report()
    assert [batch.segment for batch in said.batches] == numbers
    assert synced == [segment_path(sink.folder, number) for number in numbers]
    assert folders == [sink.folder]
    sink.journal(numbers[0], 20, [Span(20, 20, 1, 1, 0, 0, 20, 0, 0, 0)])
    sink.report()
    assert synced[2:] == [segment_path(sink.folder, numbers[0])]  # again, for the new span
    assert folders == [sink.folder]  # its name is durable already


class _Sends:
    """Gives a wait up after some looks; a look may send bytes of a file before.

    Args:
        path: The file.
        sent: How many bytes of it are sent after each look.
    """

    def __init__(self, path: Path, sent: list[int]) -> None:
        self._path, self._sent = path, sent
        self.gave_up = False

    def __call__(self) -> bool:
        self.gave_up = not self._sent
        if self._sent:
            note_sent(self._path, self._sent.pop(0))
        return self.gave_up


@pytest.mark.parametrize(
    ("end", "size", "sent", "looks_left"),
    [
        (0, 500, [1], 1),  # a record larger than the room, and nothing waits
        (60, 40, [1], 1),  # it fits
        (90, 40, [0, 20, 30, 40], 1),
        (90, 500, [20, 80, 90, 90], 1),  # not before all is sent
    ],
)
def test_a_worker_waits_until_what_it_writes_has_room(
    tmp_path: Path, end: int, size: int, sent: list[int], looks_left: int
) -> None:
    sends = _Sends(tmp_path / "segment-00001.jsonl", sent)
    await_room(tmp_path / "segment-00001.jsonl", end, size, 100, sends)
    assert (len(sent), sends.gave_up) == (looks_left, False)


def test_a_worker_that_is_to_end_waits_no_longer(tmp_path: Path) -> None:
    sends = _Sends(tmp_path / "segment-00001.jsonl", [0])
    await_room(tmp_path / "segment-00001.jsonl", 90, 40, 100, sends)
    assert sends.gave_up

"""LeasedWork and LeaseSink: leased parts of an input; their spans go to the head."""

import socket
import threading
from collections.abc import Sequence
from pathlib import Path

from dagster_dataops.checkpoints.journal.segments import segment_path
from dagster_dataops.checkpoints.journal.sent_pieces import place_of_facts, room_of_worker
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.batches import BatchStarts
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import storage, sync_data, sync_folder
from dagster_dataops.datasets.lines import Interval
from dagster_dataops.errors import DataOpsError, InputError, StorageError
from dagster_dataops.execution.agent_pool import (
    AgentOrder,
    Command,
    Instruction,
    Lease,
    Said,
    SpanBatch,
)
from dagster_dataops.execution.agents.outbox import Outbox
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.sink import Sink
from dagster_dataops.execution.work_list import Orders, WorkList
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.definition.operator import Operator


class StopAgentError(DataOpsError):
    """The head has asked the agent to stop."""


class FailedRecordError(DataOpsError):
    """A record ends the run; the head makes its error."""

    sentence = "{failure}"
    failure: Failure


class LeasedWork(WorkList):
    """The parts of the input that are leased to this node. Any thread may call its methods.

    Attributes:
        workers: The number of worker processes.
        stopped: Whether the head has asked the agent to stop.
    """

    def __init__(self, order: AgentOrder, operator: Operator) -> None:
        dataset = JsonlDataset(order.location, order.text_bytes, fingerprint=order.fingerprint)
        super().__init__(operator, dataset, Interval(0, order.text_bytes))
        self.workers = operator.__dataops__.resolved.max_workers
        self._batch_starts = BatchStarts() if self.batch_size else None
        self._lock = threading.Lock()
        self._more: list[Interval] = []
        self._recalled = False
        self._closed = False
        self.stopped = False
        self._finished: list[Interval] = []
        self._returned: list[Interval] = []
        self._left = 0  # bytes of leases that are not finished

    @property
    @override
    def growing(self) -> bool:
        unread = bool(self._more) or self._recalled
        return not self.stopped and (not self._closed or unread)

    def follow(self, instruction: Instruction) -> None:
        """Follow an instruction of the head."""
        with self._lock:
            match instruction:
                case Lease(stretches, batch_starts):
                    if self._batch_starts is not None:
                        self._batch_starts.add(batch_starts)
                    self._more += stretches
                    self._left += _size(stretches)
                case Command.RECALL:
                    self._recalled = True
                case Command.FINISH | Command.REST:
                    self._closed = True
                case Command.STOP:
                    self.stopped = True

    @override
    def take_orders(self) -> Orders:
        with self._lock:
            more, self._more = self._more, []
            recalled, self._recalled = self._recalled, False
        return Orders(more, self._give_back if recalled else None)

    def _give_back(self, rest: list[Interval]) -> None:
        with self._lock:
            self._returned += rest
            self._left -= _size(rest)

    @override
    def finish(self, start: int, end: int) -> None:
        with self._lock:
            self._finished.append(Interval(start, end))
            self._left -= end - start

    @property
    def idle(self) -> bool:
        """Whether it has finished all its leases."""
        return not self._left

    def has_news(self) -> bool:
        """Return whether there is anything to report."""
        return bool(self._finished or self._returned)

    def take_news(self) -> tuple[list[Interval], list[Interval]]:
        """Return what was finished, and what was given back, since the last call."""
        with self._lock:
            finished, self._finished = self._finished, []
            returned, self._returned = self._returned, []
        return finished, returned


class LeaseSink(Sink):
    """Reports the outcomes of leased work to the head. Any thread may call its methods.

    Args:
        order: The run.
        work: The parts of the input that are leased.
        folder: The folder of the segments on this machine; by default that of the run.

    Attributes:
        work: The parts of the input that are leased.
        unsent_bytes: Of outputs that are reported here and are not in the bucket yet.
    """

    def __init__(self, order: AgentOrder, work: LeasedWork, folder: Path | None = None) -> None:
        super().__init__(folder or order.folder)
        self._order = order
        self.work = work
        place = place_of_facts(order.outputs)
        self._outbox = place and Outbox(place, self.folder, order.segments.start)
        if self._outbox is not None:
            self.room = room_of_worker(work.workers)
        self._numbers = iter(order.segments)
        self._lock = threading.Lock()
        self._batches: dict[int, SpanBatch] = {}
        self._synced: set[int] = set()
        self.unsent_bytes = 0

    @override
    def take_segment_number(self) -> int:
        number = next(self._numbers, None)
        if number is None:
            reason = "the agent has used all its numbers of segments"
            raise StorageError(str(self.folder), "create a segment", reason)
        return number

    @override
    def journal(
        self, segment: int, offset: int, spans: list[Span], notes: Sequence[SpanNotes | None] = ()
    ) -> None:
        with self._lock:
            batch = self._batches.setdefault(segment, SpanBatch(segment, offset, [], []))
            batch.spans.extend(spans)
            batch.notes.extend(notes or [None] * len(spans))
            self.unsent_bytes += sum(span.output_bytes + span.error_bytes for span in spans)

    def has_news(self) -> bool:
        """Return whether there is anything to report."""
        return bool(self._batches) or self.work.has_news()

    def report(self) -> Said:
        """Return the news since the last report, after a sync of their segments, or an upload.

        Raises:
            StorageError: A sync or an upload failed.
        """
        finished, returned = self.work.take_news()  # first: their spans are in the batches
        with self._lock:
            batches, self._batches = list(self._batches.values()), {}
            size = self.unsent_bytes
        if self._outbox is not None:
            said = Said(batches, finished, returned, self._outbox.send(batches))
            with self._lock:
                self.unsent_bytes -= size
            return said
        used = [batch.segment for batch in batches]
        for number in used:
            sync_data(segment_path(self.folder, number))
        if not self._synced.issuperset(used):
            with storage(self.folder, "sync"):
                sync_folder(self.folder)
        self._synced.update(used)
        return Said(batches, finished, returned)

    @override
    def tick(self) -> None:
        if self.work.stopped:
            raise StopAgentError("the head stops it")

    def check_shared(self) -> None:
        """Check that this machine sees the files of the head, or reaches its bucket.

        Raises:
            InputError: It has no such input, or another one.
            StorageError: It does not see the folder of the checkpoint, or the bucket.
        """
        self.check_input_unchanged()
        if self._outbox is not None:
            self._outbox.check()
            return
        marker = segment_path(self.folder, self._order.segments.stop)
        if not marker.exists():
            reason = (
                f"machine {socket.gethostname()} sees no file {marker.name} there, which the run "
                "has made; the root of the results must be a folder that all machines share, or "
                "a bucket"
            )
            raise StorageError(str(self.folder), "find the checkpoint", reason)

    @override
    def check_input_unchanged(self) -> None:
        now = self.work.dataset.stamp()
        if (now.size, now.modified_ns) != (self._order.size, self._order.modified_ns):
            reason = (
                f"machine {socket.gethostname()} sees another file there than the run, or it was "
                "changed meanwhile; every machine must reach the same file at this path"
            )
            raise InputError(str(self.work.dataset.location), reason)

    @override
    def error_of(self, failure: Failure) -> DataOpsError:
        return FailedRecordError(failure)


def _size(stretches: list[Interval]) -> int:
    return sum(end - start for start, end in stretches)

"""The main function of a worker process: process the elements of the tasks that it receives."""

import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.foundation.concurrency.fork_safety import leave_inherited_garbage
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.item_failures import (
    FAILED,
    UNSEEN,
    FailureCounter,
    FailureHandler,
)
from dagster_dataops.streams.core.stage import ReadContext, State
from dagster_dataops.streams.sharding.feeds import PartFeed, run_cursors
from dagster_dataops.streams.sharding.tasks import (
    ItemFailure,
    Start,
    StreamJob,
    TaskResult,
    dumps,
    encode_result,
    loads,
)

READY: Final = b""


class RecordedFailures(FailureHandler):
    """Record failures, for the reading process to handle.

    Too many are an error here as well: reading may never come to another item.

    Args:
        job: How failed items are handled; ``raise`` raises them here.
    """

    def __init__(self, job: StreamJob) -> None:
        super().__init__(job.on_error, job.max_errors, tolerance=job.tolerance)
        self.items: list[Any] = []
        self.failures: list[ItemFailure] = []

    @override
    def handle(self, counter: FailureCounter, item: Any, error: Exception) -> None:
        if self.on_error == "raise":
            super().handle(counter, item, error)
        counter.count += 1
        in_a_row = None if counter.before is UNSEEN else counter.before is FAILED
        self.failures.append(
            ItemFailure(len(self.items), counter.number, counter.count, in_a_row, item, error)
        )
        if self.max_errors is not None and len(self.failures) > self.max_errors:
            msg = f"more than max_errors={self.max_errors} items failed"
            raise DataPipelineError(msg)


class _Chain:
    """The open stages of a worker."""

    def __init__(self, start: Start) -> None:
        job, state, at = start
        self._failures = RecordedFailures(job)
        self._top = job.chain.open(ReadContext(job.seed, self._failures))
        self._run, self._elements, feed = run_cursors(self._top)
        assert isinstance(feed, PartFeed)  # noqa: S101 - the job has one
        self._feed = feed
        self._top.restore(loads(state))
        self._feed.at = self._start = at
        if self._elements is not None:
            self._first_number = self._elements.number - at * self._elements.step

    def process(self, first: int, payload: Any) -> TaskResult:
        """Return the result of a task. An error is part of it."""
        began = time.perf_counter()
        items: list[Any] = []
        states: list[State] = []
        self._failures.items = items
        error: BaseException | None = None
        try:
            self._feed.begin(first, payload)
            self._failures.failures = []  # of elements that other workers process
            self._place(first)
            for cursor in self._run:
                cursor.counter.before = UNSEEN
            state, add, note = self._top.state, items.append, states.append
            for item in self._top.items():
                add(item)
                note(state())
        except BaseException as failure:  # noqa: BLE001 - raised again in the reading process
            error = failure
        return TaskResult(
            items,
            dumps(states),
            self._failures.failures,
            dumps(self._top.state()),
            self._feed.ended,
            error,
            time.perf_counter() - began,
            [step.counter.number for step in self._run if step.counter.before is None],
        )

    def _place(self, first: int) -> None:
        if first != self._start:
            for cursor in self._run:  # drop the rest of an element that was begun
                cursor.reset()
        if self._elements is not None:
            self._elements.number = self._first_number + first * self._elements.step


def serve(
    start: Start, ends: tuple[Connection, Connection], inherited: Sequence[Connection] = ()
) -> None:
    """Process tasks until the reading process ends.

    Args:
        start: Where to start.
        ends: The connection to read tasks from, and the one to write outcomes to.
        inherited: Connections of the reading process, to be closed here.
    """
    leave_inherited_garbage()
    for end in inherited:
        end.close()
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the reading process stops its workers
    requests, results = ends
    received: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(requests, received), daemon=True).start()
    with suppress(BrokenPipeError):  # the reading process has ended
        results.send_bytes(READY)
        _process_all(start, received, results)


def _process_all(start: Start, received: "SimpleQueue[bytes]", results: Connection) -> None:
    chain: _Chain | None = None
    while True:
        first, payload = loads(received.get())
        try:
            chain = chain or _Chain(start)
            result = chain.process(first, payload)
        except BaseException as error:  # noqa: BLE001 - raised again in the reading process
            result = TaskResult([], b"", [], start.state, error=error)
        results.send_bytes(encode_result(result))


def main(requests: int, results: int) -> None:
    """Process tasks in a new interpreter, whose first message describes its start.

    Args:
        requests: The descriptor to read from.
        results: The descriptor to write to.
    """
    ends = (Connection(requests, writable=False), Connection(results, readable=False))
    try:
        start = loads(ends[0].recv_bytes())
    except EOFError:  # the reading process has ended
        return
    serve(start, ends)


def _receive(requests: Connection, received: "SimpleQueue[bytes]") -> None:
    """Queue the tasks, so that the reading process never waits to send one."""
    try:
        while True:
            received.put(requests.recv_bytes())
    except (EOFError, OSError):  # the reading process has ended
        os._exit(0)

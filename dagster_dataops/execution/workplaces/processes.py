"""Process mode: workers process byte ranges of the input.

Each worker reads, decodes, calls the operator, encodes, and appends to its own segment. It sends
only the location of each span's output to the parent. A worker that dies is replaced. Its range is
divided until the record that kills workers is found; that record goes to the error file.
"""

import signal
import time
from contextlib import suppress
from typing import Final

from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.datasets.file_values.result_roots import facts_of_keeper
from dagster_dataops.datasets.lines import Interval, Line, next_line_start
from dagster_dataops.errors import (
    OperatorOpenError,
    RunStoppedError,
    StorageError,
    WorkerError,
)
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.record_failures import Failure, timed_out
from dagster_dataops.execution.records.span_draft import Finished, span_of
from dagster_dataops.execution.sink import Sink
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.execution.workers import fork_server, protocol
from dagster_dataops.execution.workers.idle_workers import idle_workers
from dagster_dataops.execution.workers.protocol import Kind, Range
from dagster_dataops.execution.workers.scheduler import Scheduler
from dagster_dataops.execution.workers.signals import DRAIN
from dagster_dataops.execution.workers.worker_main import Assignment
from dagster_dataops.execution.workers.worker_pool import WorkerPool
from dagster_dataops.execution.workers.worker_process import Overdue, WorkerProcess
from dagster_dataops.foundation.concurrency.cores import usable_cores
from dagster_dataops.foundation.concurrency.fork_safety import may_fork
from dagster_dataops.foundation.places.bucket import facts_of_location
from dagster_dataops.foundation.places.opening import open_readable
from dagster_dataops.foundation.places.range_source import (
    Readable,
    close_readable,
    read_range,
    state_of,
)

_WAIT_SECONDS: Final = 0.1
_STUCK_SECONDS: Final = 2.0  # seconds beyond the time limit; workers end most calls themselves
_DEATHS: Final = 3
_START_CHECK_SECONDS: Final = 0.01
_FORK_SECONDS: Final = 0.05
_SPAWN_SECONDS: Final = 0.3
_COMPUTING_DEMAND: Final = 0.4  # of a core
_LITTLE_GAIN: Final = 10
_MOST_STILLBORN: Final = 3
_GRACE_SECONDS: Final = 1.0
_LAST_MESSAGES_SECONDS: Final = 1.0  # for all workers together


def run(attempt: Attempt, work: WorkList, sink: Sink) -> None:
    """Run the open records.

    Raises:
        RecordError: A record failed and failures are not ignored.
        OutageError: Too many consecutive calls of one worker failed, or too many workers died.
        WorkerError: Workers cannot be started.
        OperatorOpenError: The operator cannot be opened.
        RunStoppedError: The operator stopped the run.
    """
    descriptor = open_readable(work.dataset.location)
    try:
        _Run(attempt, work, sink, descriptor).run()
    finally:
        close_readable(descriptor)


class _Run:
    def __init__(self, attempt: Attempt, work: WorkList, sink: Sink, descriptor: Readable) -> None:
        self._attempt = attempt
        self._settings = attempt.settings
        self._work = work
        self._sink = sink
        self._descriptor = descriptor
        batches = work.batch_starts(descriptor)
        most = len(attempt.gpus) or self._settings.max_workers
        self._scheduler = Scheduler(descriptor, work.open, most, batches)
        self._pool = WorkerPool(attempt.operator, attempt.gpus)
        self._failed: Failure | None = None
        self._deaths = Breaker(self._settings.stop_after_failures)
        self._last_failed: list[int] = []  # byte positions of records, from workers that end
        self._ending = False
        self._stamp = state_of(descriptor)
        self._ever_ready = False
        # A small input is finished before a second worker is ready.
        size = sum(end - start for start, end in work.open)
        self._missing = (most if work.growing else min(most, size)) - 1
        self._last_done = 0.0  # time at which a range was finished, or the first worker was ready
        self._failed_starts = 0  # consecutive workers that died before they were ready

    def run(self) -> None:
        try:
            self._start_worker()
            while self._failed is None and self._busy():
                waits = self._work.growing and not self._scheduler  # for work
                starting = self._missing and self._ever_ready and not waits
                if starting:
                    self._start_missing()
                self._listen(_START_CHECK_SECONDS if starting else _WAIT_SECONDS)
                self._sink.tick()
                if self._work.growing:
                    self._take_orders()
            if self._failed is None:
                self._pool.stop()
        finally:
            self._end()
        if self._failed is not None:
            raise self._sink.error_of(self._failed)

    def _busy(self) -> bool:
        workers = self._pool.workers
        at_work = bool(self._scheduler) or any(worker.ranges for worker in workers)
        return at_work or self._work.growing

    def _take_orders(self) -> None:
        """Add stretches of the input to the work, or return those that no worker has."""
        more, give_back = self._work.take_orders()
        if give_back is not None:
            give_back(self._scheduler.take_rest())
        if not more:
            return
        self._scheduler.add(more)
        if not self._pool.workers:  # all of them died while there was no work
            self._start_worker()
        for worker in self._pool.workers:
            self._supply(worker)

    def _start_missing(self) -> None:
        """Start further workers while the rest takes each worker longer than a start.

        A range that takes long shows this sooner than the speed of the ranges before it. Time
        counts from the moment when the first worker was ready.
        """
        left, at_work = self._scheduler.seconds_left, time.monotonic() - self._last_done
        if max(left, at_work) <= _FORK_SECONDS:  # called after every range: skip the rest
            return
        workers, seconds = self._pool.workers, self._start_seconds()
        while self._missing:
            starting = sum(not worker.ready for worker in workers)
            price = seconds * self._start_factor(starting)
            if max(left / len(workers), at_work) <= price:
                return
            if not self._scheduler.has_more_than(starting):
                return
            self._missing -= 1
            self._start_worker()

    def _start_seconds(self) -> float:
        """Return the seconds until a new worker is ready."""
        if may_fork() or idle_workers:
            return _FORK_SECONDS
        least = _FORK_SECONDS if fork_server.running() else _SPAWN_SECONDS
        return max(least, self._pool.start_seconds)

    def _start_factor(self, starting: int) -> float:
        """Return the factor by which another start may take longer than a single one.

        Workers that start together share the cores. If computing workers use all cores, another
        worker gains little, and pays off only in long runs.
        """
        workers, cores = self._pool.workers, usable_cores()
        demand = max(worker.demand for worker in workers)
        computing = len(workers) >= cores and demand > _COMPUTING_DEMAND
        return (1 + starting // cores) * (_LITTLE_GAIN if computing else 1)

    def _start_worker(self) -> None:
        name, bucket = facts_of_location(self._work.dataset.location)
        assignment = Assignment(
            input=name,
            stamp=self._stamp,
            folder=str(self._sink.folder),
            segment=self._sink.take_segment_number(),
            checks_input=self._work.checks_input,
            bucket=bucket,
            room=self._sink.room,
            keeper=facts_of_keeper(self._attempt.operator.__dataops__.keeper),
        )
        self._pool.start(assignment)

    def _supply(self, worker: WorkerProcess) -> None:
        """Give a worker its next ranges. If it has died meanwhile, `_listen` notices."""
        if self._ending or not worker.ready or worker.leaving:
            return
        depth = 1 if worker.late else self._scheduler.depth
        sharing = len(self._pool.workers)
        while len(worker.ranges) < depth and (order := self._scheduler.take(sharing)):
            worker.ranges.append(order)
            with suppress(OSError):
                worker.connection.send_bytes(protocol.pack_range(order))

    def _listen(self, seconds: float) -> None:
        for worker, has_message in self._pool.wait_for_messages(seconds).items():
            if not (has_message and self._receive(worker)):
                self._handle_death(worker)
        if self._settings.timeout is not None:
            self._end_overdue(self._settings.timeout, time.monotonic())

    def _receive(self, worker: WorkerProcess) -> bool:
        """Handle a worker's message; return whether the worker is alive."""
        try:
            message = worker.receive()
        except (EOFError, OSError):
            return False
        if worker.behind:
            worker.behind -= message[0] == Kind.IDLE
        else:
            self._handle(worker, message)
        return True

    def _end_overdue(self, limit: float, now: float) -> None:
        """End workers whose record exceeds its time limit, and that cannot end the call themselves.

        SIGTERM is sent first, so that they can write their finished records.
        """
        for worker in self._pool.workers:
            if worker.overdue is not None:
                if now >= worker.overdue.kill_at:
                    worker.signal(signal.SIGKILL)
            elif worker.heartbeat is not None:
                offset, since = worker.heartbeat.read()
                if since and now - since > limit + _STUCK_SECONDS:
                    worker.overdue = Overdue(offset, now + _GRACE_SECONDS)
                    worker.signal(signal.SIGTERM)

    def _handle(self, worker: WorkerProcess, message: bytes) -> None:
        match message[0]:
            case Kind.READY:
                self._handle_ready(worker)
            case Kind.SPAN:
                worker.take_note(self._journal(worker, message))
            case Kind.DONE:
                self._finished(worker, *protocol.unpack(message))
            case Kind.SHORTENED:
                self._shorten(worker, *protocol.unpack(message))
            case Kind.STALE:
                self._pool.discard(worker)
                self._start_worker()
            case Kind.FAILED | Kind.LAST_FAILED | Kind.UNFIT | Kind.LEAVING:
                self._take_note(worker, message)
            case Kind.UNOPENED:
                raise OperatorOpenError(*protocol.unpack(message))
            case _:
                self._raise_fault(message[0], *protocol.unpack(message))

    def _take_note(self, worker: WorkerProcess, message: bytes) -> None:
        """Record the failure that ends the run, what failed last in a worker, or that it ends."""
        if message[0] == Kind.LEAVING:
            worker.leaving = True
        elif message[0] == Kind.UNFIT:
            (worker.unfit,) = protocol.unpack(message)
        elif message[0] == Kind.FAILED:
            self._failed = self._failed or Failure(*protocol.unpack(message))
        else:
            self._last_failed += protocol.unpack(message)

    def _journal(self, worker: WorkerProcess, message: bytes) -> Span:
        offset, notes, *fields = protocol.unpack(message)
        span = Span(*fields)
        self._sink.journal(worker.segment, offset, [span], [SpanNotes.from_text(notes)])
        if span.failed < span.records:
            self._deaths.succeeded()
        return span

    def _handle_ready(self, worker: WorkerProcess) -> None:
        if not self._ever_ready:
            self._last_done = time.monotonic()
        self._ever_ready = True
        self._pool.mark_ready(worker)
        self._failed_starts = 0
        self._supply(worker)

    def _finished(self, worker: WorkerProcess, seconds: float) -> None:
        """Record that a worker has finished a range, and give it the next one."""
        done = worker.ranges.popleft()
        worker.late = False
        worker.journaled_to = 0  # the next range may lie before this one
        self._last_done = time.monotonic()
        self._scheduler.measured(done.end - done.start, seconds)
        self._work.finish(done.start, done.end)
        self._supply(worker)

    def _shorten(self, worker: WorkerProcess, end: int) -> None:
        """Give the lines after ``end`` of a worker's current range to free workers."""
        current = worker.ranges[0]
        worker.ranges[0] = current._replace(end=end)
        worker.late = True
        self._scheduler.put_back(Interval(end, current.end))
        for other in self._pool.workers:
            self._supply(other)

    def _raise_fault(self, kind: int, text: str) -> None:
        if kind == Kind.STOPPED:
            raise RunStoppedError(self._attempt.name, text)
        self._sink.check_input_unchanged()
        if kind == Kind.UNABLE:
            raise WorkerError(self._attempt.name, text)
        raise StorageError(str(self._sink.folder), "write outcomes", text)

    def _handle_death(self, worker: WorkerProcess) -> None:
        """Replace a worker that died; another one processes its unsettled lines again."""
        self._pool.discard(worker)
        if self._failed is not None:
            return
        untouched = list(worker.ranges)
        if not worker.ready:
            self._count_failed_start(worker)
        elif untouched and not worker.leaving:
            current = untouched.pop(0)
            self._work.finish(current.start, max(current.start, worker.journaled_to))
            if worker.overdue is not None and not self._work.batch_size:
                self._give_back_overdue(
                    current, max(current.start, worker.journaled_to), worker.overdue
                )
            else:
                killer = self._scheduler.give_back_after_death(current, worker.journaled_to)
                if killer is not None:
                    self._blame(killer, self._died(worker))
        for queued in reversed(untouched):
            self._scheduler.give_back(queued)
        worker.ranges.clear()
        self._replace_dead()

    def _replace_dead(self) -> None:
        """Start a worker in place of one that died, now or when there is work again."""
        if self._scheduler:
            self._start_worker()
        else:
            self._missing += self._work.growing

    def _give_back_overdue(self, order: Range, start: int, overdue: Overdue) -> None:
        """Journal the overdue record as failed; another worker processes the rest of its range."""
        limit = self._settings.timeout
        if limit is None or not start <= overdue.offset < order.end:  # its call has ended after all
            self._scheduler.give_back(order._replace(start=start))
            return
        after = next_line_start(self._descriptor, overdue.offset + 1, order.end)
        self._scheduler.give_back(order._replace(start=after))
        self._scheduler.give_back(order._replace(start=start, end=overdue.offset))
        self._blame(Range(overdue.offset, after), timed_out(limit))

    def _count_failed_start(self, worker: WorkerProcess) -> None:
        """Tolerate workers killed from outside while they start; fail if they crash themselves.

        SIGKILL comes from outside. Any other end is a crash, unless another worker has started or
        this one was idle before.
        """
        self._failed_starts += worker.fresh
        from_outside = self._ever_ready or not worker.fresh or worker.status == -signal.SIGKILL
        if not from_outside or self._failed_starts > _MOST_STILLBORN:
            reason = f"a worker died before it was ready ({worker.cause_of_death})"
            raise WorkerError(self._attempt.name, reason)

    def _blame(self, killer: Range, failure: Failure) -> None:
        """Journal a record that killed its worker as failed, without running it again."""
        data = read_range(self._descriptor, killer.start, killer.end - killer.start)
        failure = failure._replace(offset=killer.start)
        self._deaths.count(failure, killer.start)
        if self._deaths.open or not self._settings.ignore_errors:
            self._failed = failure
            return
        line = Line(killer.start, killer.end, data.removesuffix(b"\n"))
        checks = self._work.checks_input
        span = span_of([Finished(line, failure)], self._attempt.name, check_input=checks)
        self._sink.write(span)
        self._work.finish(killer.start, killer.end)

    def _died(self, worker: WorkerProcess) -> Failure:
        """Return the failure of a record that has ended its workers."""
        cause, limit = worker.cause_of_death, self._settings.max_worker_memory_mb
        if limit and not worker.unfit:
            cause += f"; its memory limit was {limit:,} MB"
        text = f"it ended its worker process three times, the last time alone in it ({cause})"
        return Failure("WorkerDied", text, "", attempts=_DEATHS)

    def _end(self) -> None:
        """End the workers; after a failure or interrupt journal their finished records first.

        After a complete run they become idle, or end, while the result is published.
        """
        self._ending = True
        if not self._busy() and self._failed is None:
            self._attempt.resources.callback(self._pool.close, _GRACE_SECONDS)
            return
        try:
            self._drain(self._settings.drain_seconds)
            self._pool.terminate()
            self._receive_last_messages(time.monotonic() + _LAST_MESSAGES_SECONDS)
        finally:
            self._pool.close(0.0)  # they had enough time to report
            self._sink.last_failed = {*self._last_failed, *self._deaths.last_failed}

    def _drain(self, seconds: float) -> None:
        """Let the workers end their calls in flight; a second interrupt ends the wait."""
        if seconds:
            self._attempt.log(
                f"stopping: waiting up to {seconds:g} s for the calls in flight; interrupt again "
                "to abandon them"
            )
            self._pool.terminate(DRAIN)
            self._receive_last_messages(time.monotonic() + seconds)

    def _receive_last_messages(self, until: float) -> None:
        """Journal the spans that workers still report; ignore other messages.

        An interrupt may have occurred between any two steps.
        """
        for worker in self._pool.workers:
            try:
                while not worker.receiving:
                    if not worker.connection.poll(max(0.0, until - time.monotonic())):
                        break
                    message = worker.receive()
                    if message[0] == Kind.SPAN:
                        self._journal(worker, message)
                    elif message[0] == Kind.LAST_FAILED:
                        self._take_note(worker, message)
            except (EOFError, OSError):
                continue

"""Collector: journal single records in the order in which they finish, for threads and asyncio.

The worker that finished a record journals it before it takes the next one, so that a SIGKILL
repeats only the calls in flight. This costs 50 to 100 microseconds of CPU more per call than doing
so twenty times a second, and delays no call. If more than a thousand records finish per second, a
worker journals about once per millisecond all records that have finished since. Adjacent records
that are journaled together form one span.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Final

from dagster_dataops.datasets.batches import batches_of
from dagster_dataops.datasets.lines import Line, iterate_lines
from dagster_dataops.errors import RunStoppedError, RunWaitingError
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.record_failures import Failure
from dagster_dataops.execution.records.retries import PauseEnded
from dagster_dataops.execution.records.span_draft import Finished, span_of
from dagster_dataops.execution.sink import Sink
from dagster_dataops.execution.timeouts.record_timeout import TooManyStuckError
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.foundation.concurrency.fork_safety import ForkGuard
from dagster_dataops.foundation.concurrency.waitable_thread import WaitableThread
from dagster_dataops.foundation.places.opening import open_readable
from dagster_dataops.foundation.places.range_source import close_readable
from dagster_dataops.operators.outcomes.record_context import StopRun

_LOOK_SECONDS: Final = 0.02  # after which the main thread journals the remaining outcomes
_PERIOD_SECONDS: Final = 0.001  # number of drains by workers if records finish faster ...
_BURST_SECONDS: Final = 0.05  # ... for longer than this takes at one drain per period
_NOTE_SECONDS: Final = 0.5
_READY_CALLS: Final = 256
_READY_BYTES: Final = 1 << 20
_START: Final = itemgetter(0)  # the line; lines are ordered by their start


class Collector:
    """Distribute the open lines, receive their outcomes, and journal them.

    Attributes:
        handed_out: Number of lines that were handed out; approximate: threads do not lock it.
        exhausted: Whether no line is left.
        breaker: Counts the failed attempts, and stops the run when it opens.
    """

    def __init__(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
        self._attempt = attempt
        self._work = work
        self._sink = sink
        self._fork_guard = ForkGuard()
        self._apart = attempt.settings.reuse_outcomes
        self._segment = sink.new_segment()
        self._descriptor = open_readable(work.dataset.location)
        self._calls = self._lines_of_calls()
        self._ready: deque[list[Line]] = deque()  # those of the next calls
        self._read_lock = threading.Lock()
        self._drain_lock = threading.Lock()
        self._finished: deque[Finished] = deque()
        self._drained_until = 0.0  # end of the period that earlier drains have used
        self._first_failure: Failure | None = None
        self._fault: BaseException | None = None
        self._drains = True
        self._segment_closed = False
        self._stop = threading.Event()
        settings = attempt.settings
        self._ignores_errors = settings.ignore_errors
        limit = settings.stop_after_failures
        self.breaker = Breaker(limit, self._stop.set, settings.max_workers, attempt.operator)
        self.handed_out = 0
        self.exhausted = False

    def _lines_of_calls(self) -> Iterator[list[Line]]:
        """Yield the lines of each call of the operator."""
        work = self._work
        if work.batch_size:
            return batches_of(self._descriptor, work.open, work.content.start, work.batch_size)
        return ([line] for line in iterate_lines(self._descriptor, work.open))

    @property
    def stopped(self) -> bool:
        """Whether no further line is handed out."""
        return self._stop.is_set()

    @property
    def full(self) -> bool:
        """Whether to begin no call now, because many outputs wait to be sent."""
        return self._sink.full and not self._stop.is_set()

    def await_room(self) -> None:
        """Wait until `full` is false; in a thread that may wait."""
        while self.full:
            self._stop.wait(_LOOK_SECONDS)

    def pause(self, seconds: float) -> None:
        """Wait before another attempt, in the thread of the record.

        Raises:
            PauseEnded: The run stops.
        """
        if self._stop.wait(seconds):
            raise PauseEnded

    def take(self) -> list[Line]:
        """Return the lines of the next call; none if there is none or the run stops."""
        while not self._stop.is_set():
            try:
                lines = self._ready.popleft()
            except IndexError:
                if not self._read_more():
                    break
            else:
                self.handed_out += len(lines)
                return lines
        return []

    def _read_more(self) -> bool:
        """Read the next lines, unless another thread just has; return whether there are any."""
        with self._read_lock:
            size = 0
            while (
                not self._stop.is_set() and len(self._ready) < _READY_CALLS and size < _READY_BYTES
            ):
                lines = next(self._calls, [])
                if not lines:
                    break
                self._ready.append(lines)
                size += lines[-1].end - lines[0].start
            self.exhausted = not self._ready
            return not self.exhausted

    def put(self, finished: list[Finished]) -> None:
        """Take the outcomes of a call's lines, in the thread that finished it."""
        self._fork_guard.check()
        for result in finished if not self._ignores_errors else ():
            outcome = result.outcome
            if isinstance(outcome, Failure):
                failure = outcome._replace(offset=result.line.start)
                self._first_failure = self._first_failure or failure
                self._stop.set()
                return
        self._finished.extend(finished)  # at once: a batch is never journaled in part
        for result in finished:
            self.breaker.count(result.outcome, result.line.start)
        if self._may_drain() and not self._stop.is_set():
            try:
                self.drain()
            except BaseException as error:  # noqa: BLE001 - handed to the main thread
                self.fail(error)

    def _may_drain(self) -> bool:
        """Return whether a drain is due, and count it: one per period, except in short bursts."""
        now = time.monotonic()
        if self._drained_until > now + _BURST_SECONDS:
            return False
        self._drained_until = max(self._drained_until, now) + _PERIOD_SECONDS
        return True

    def fail(self, error: BaseException, *, drains: bool = False) -> None:
        """Stop the run for an error that no record caused; the main thread raises it.

        Args:
            error: The error.
            drains: Whether to wait for the calls in flight.
        """
        if self._fault is None:
            self._fault, self._drains = error, drains
        self._stop.set()

    def end(self, error: BaseException) -> None:
        """Stop the run for an exception that ended a worker."""
        match error:
            case PauseEnded():
                return
            case StopRun(waits=True):
                self.fail(RunWaitingError(self._attempt.name, error.reason), drains=True)
            case StopRun():
                self.fail(RunStoppedError(self._attempt.name, error.reason), drains=True)
            case TooManyStuckError():
                self.fail(RunStoppedError(self._attempt.name, str(error)))
            case _:
                self.fail(error)

    def drain(self) -> None:
        """Journal everything that has finished."""
        with self._drain_lock:
            finished = [self._finished.popleft() for _ in range(len(self._finished))]
            if not finished or self._segment_closed:
                return
            finished.sort(key=_START)
            try:
                self._journal(finished)
            except BaseException:  # an interrupt, or a disk that may have room again soon
                self._finished.extendleft(reversed(finished))
                raise

    def _journal(self, finished: list[Finished]) -> None:
        runs = [[result] for result in finished] if self._apart else _neighbours(finished)
        check, name = self._work.checks_input, self._attempt.name
        results = [span_of(run, name, check_input=check) for run in runs]
        data = b"".join(part for result in results for part in (result.output, result.errors))
        spans, notes = [result.span for result in results], [result.notes for result in results]
        self._sink.journal(self._segment.number, self._segment.append(data), spans, notes)

    def raise_if_failed(self) -> None:
        """Raise the error that stopped the run, if any."""
        if self._fault is not None:
            raise self._fault
        if self._first_failure is not None:
            raise self._sink.error_of(self._first_failure) from self._first_failure.error
        if self.breaker.failure is not None:
            self._sink.last_failed = set(self.breaker.last_failed)
            raise self._sink.outage_of(self.breaker.failure) from self.breaker.failure.error

    def watch(
        self, running: list[WaitableThread], gather: Callable[[], None] | None = None
    ) -> None:
        """Drain and tick in the main thread until the threads ``running`` have ended.

        ``gather`` runs first and may start more of them.

        Any exception, an interrupt included, stops the run: no call is begun, and the calls in
        flight have ``_drain_seconds`` to end. Finished records are journaled. Calls that are still
        running are abandoned.
        """
        try:
            if gather is not None:
                gather()
            for thread in running:
                while not thread.ended and not self.stopped:
                    thread.wait(_LOOK_SECONDS)
                    self.drain()
                    self._sink.tick()
        finally:
            self._stop.set()
            try:
                self._await_calls(running)
                self.drain()
            finally:
                with self._drain_lock:  # abandoned calls keep running; their outcomes are ignored
                    self._segment_closed = True
                    self._segment.close()
        self.raise_if_failed()

    def _await_calls(self, running: list[WaitableThread]) -> None:
        """Wait for the calls in flight, and journal them; a second interrupt ends the wait."""
        seconds = self._attempt.settings.drain_seconds if self._drains else 0.0
        began, noted = time.monotonic(), False
        for thread in running:
            while not thread.ended and (waited := time.monotonic() - began) < seconds:
                if waited > _NOTE_SECONDS and not noted:
                    noted = True
                    self._attempt.log(
                        f"stopping: waiting up to {seconds:g} s for the calls in flight; "
                        "interrupt again to abandon them"
                    )
                thread.wait(_LOOK_SECONDS)
                self.drain()

    def close(self) -> None:
        """Close the input, after the last line was taken."""
        with self._read_lock:
            self._stop.set()
            close_readable(self._descriptor)


def _neighbours(finished: list[Finished]) -> Iterator[list[Finished]]:
    """Yield groups of records that follow one another in the input without a gap."""
    run = [finished[0]]
    for item in finished[1:]:
        if item.line.start == run[-1].line.end:
            run.append(item)
        else:
            yield run
            run = [item]
    yield run

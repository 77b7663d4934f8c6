"""Thread mode: as many calls in flight as there are workers; the next starts when one completes.

There are no futures and no window in input order, so a slow call delays no other call. A window of
twice the workers would take 2.6 to 8 times as long under heavy-tailed latencies. A finished record
is in the journal before its worker takes the next one; `Collector` documents the exception.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Final

from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.records.call_steps import CallOnce
from dagster_dataops.execution.records.calling import calling_once
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.execution.sink import Sink
from dagster_dataops.execution.timeouts.record_timeout import Stuck
from dagster_dataops.execution.timeouts.thread_calls import CallLimit, start_thread
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.execution.workplaces.collector import Collector
from dagster_dataops.foundation.concurrency.waitable_thread import WaitableThread
from dagster_dataops.operators.outcomes.record_context import Tally

_LOOK_SECONDS: Final = 0.001
_QUICK_CALLS: Final = 4  # of one thread within that time
_ALONE_SECONDS: Final = 0.05


def run(attempt: Attempt, work: WorkList, sink: Sink) -> None:
    """Run the open records.

    Raises:
        RecordError: A record failed and failures are not ignored.
        RunStoppedError: Too many calls went on after their time limit, or the operator stopped the
            run.
        OperatorOpenError: The operator cannot be opened.
    """
    collector = Collector(attempt, work, sink)
    retries = Retries(attempt.settings, collector.pause, collector.breaker)
    stuck = Stuck(attempt.settings.max_workers)

    def call() -> None:
        try:
            with _calling(attempt, retries, stuck) as call_once:
                while lines := collector.take():
                    collector.put(call_once(lines))
                    collector.await_room()
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            collector.end(error)

    try:
        pool = _ThreadPool(call, attempt)
        collector.watch(pool.threads, partial(pool.start_others, collector))
    finally:
        collector.close()
        retries.report(attempt.log)


@contextmanager
def _calling(attempt: Attempt, retries: Retries, stuck: Stuck) -> Iterator[CallOnce]:
    """Yield the function that calls for lines in this thread, within the time limit if any."""
    tally, seconds, around = Tally(), attempt.settings.timeout, None
    with ExitStack() as stack:
        if seconds is not None and not attempt.operator.__dataops__.spec.asynchronous:
            around = stack.enter_context(closing(CallLimit(seconds, stuck, tally))).around
        yield stack.enter_context(calling_once(attempt.operator, (), around, retries, tally))


class _ThreadPool:
    """The threads of one run: as many as there are workers, unless the run ends earlier.

    Threads whose calls do not wait only compete for the interpreter. So the first thread is alone.
    If its calls take longer than a moment, there are two threads after a millisecond, then four.
    After a twentieth of a second all threads are started.
    """

    def __init__(self, work: Callable[[], None], attempt: Attempt) -> None:
        self._work = work
        self._attempt = attempt
        self.threads: list[WaitableThread] = []
        self._start(1)

    def _start(self, count: int) -> None:
        for number in range(len(self.threads), min(count, self._attempt.settings.max_workers)):
            thread = WaitableThread(self._work, f"{self._attempt.name}-{number}")
            self.threads.append(thread)
            start_thread(thread)

    def start_others(self, collector: Collector) -> None:
        """Start the other threads, unless the run ends earlier."""
        until = time.monotonic() + _ALONE_SECONDS
        while time.monotonic() < until and len(self.threads) < self._attempt.settings.max_workers:
            before = collector.handed_out
            self.threads[0].wait(_LOOK_SECONDS)
            if collector.exhausted or collector.stopped:
                return
            if collector.handed_out - before < _QUICK_CALLS * len(self.threads):
                self._start(2 * len(self.threads))
        self._start(self._attempt.settings.max_workers)

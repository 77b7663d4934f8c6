"""Async mode: ``async def`` operators, thousands of calls in flight on one event loop.

The loop runs in a separate thread. So it works in notebooks, where a loop is already running, and
interrupts reach the main thread at once.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.records.async_calling import async_callers
from dagster_dataops.execution.records.lifecycle import context_of, opened
from dagster_dataops.execution.records.record_failures import failure_of
from dagster_dataops.execution.records.retries import PauseEnded, Retries
from dagster_dataops.execution.records.span_draft import Finished
from dagster_dataops.execution.sink import Sink
from dagster_dataops.execution.timeouts.call_task import CallTask
from dagster_dataops.execution.timeouts.event_loop import LoopClosedError, event_loop, run_through
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.execution.workplaces.collector import Collector
from dagster_dataops.foundation.concurrency.garbage import collected_rarely
from dagster_dataops.foundation.concurrency.waitable_thread import WaitableThread
from dagster_dataops.operators.outcomes.record_context import StopRun

if TYPE_CHECKING:
    from dagster_dataops.datasets.lines import Line

_LOOK_SECONDS: Final = 0.02


def run(attempt: Attempt, work: WorkList, sink: Sink) -> None:
    """Run the open records.

    Raises:
        RecordError: A record failed and failures are not ignored.
        RunStoppedError: Too many cancelled calls are still running.
    """
    collector = Collector(attempt, work, sink)
    retries = Retries(attempt.settings, collector.pause, collector.breaker)
    calls = _Calls(attempt, collector, retries)
    thread = WaitableThread(calls.run, attempt.name)
    thread.start()
    try:
        with collected_rarely():
            collector.watch([thread])
    finally:
        calls.cancel()
        collector.close()
        retries.report(attempt.log)


class _Calls:
    """The calls in flight: one task for each worker, which takes the next line when it is free."""

    def __init__(self, attempt: Attempt, collector: Collector, retries: Retries) -> None:
        self._collector = collector
        self._operator = attempt.operator
        self._retries = retries
        self._workers = attempt.settings.max_workers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[CallTask[None]] = []
        self._in_flight: dict[int, list[Line]] = {}  # by the number of the task
        self._again: list[list[Line]] = []  # in flight when a call closed the loop
        self._alone = self._has_taken = False  # in the present loop

    def run(self) -> None:
        try:
            rest = True
            while rest:
                rest = bool(self._again)
                try:
                    self._run_loop()
                except LoopClosedError as error:
                    self._after_closed(error)
                    rest = True
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            self._collector.end(error)

    def _run_loop(self) -> None:
        """Run lines in one event loop: the next one of `_again` alone, or else all."""
        context = context_of(self._operator)
        self._alone, self._has_taken = bool(self._again), False
        with event_loop() as loop:
            run = partial(run_through, loop)
            with opened(self._operator, run, context) as opened_operator:
                self._callers = async_callers(opened_operator, context, self._retries)
                run(self._run())

    def _after_closed(self, error: LoopClosedError) -> None:
        """Fail the line that was alone in the closed loop; else run the lines of each call alone.

        The lines of a single call are settled one by one. A call that has ended may have closed the
        loop.
        """
        calls, self._in_flight = list(self._in_flight.values()), {}
        if not self._has_taken:
            raise error
        if len(calls) == 1 and len(calls[0]) > 1:
            self._again += [[line] for line in calls[0]]
        elif self._alone and calls:
            self._collector.put([Finished(calls[0][0], failure_of(error))])
        else:
            self._again += calls

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        main = cast("CallTask[None]", asyncio.current_task())
        workers = 1 if self._alone else self._workers
        self._tasks = [CallTask(self._work(number)) for number in range(workers)]
        waiting: set[CallTask[None]] = set(self._tasks)
        while waiting:
            try:
                ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
            except asyncio.CancelledError:
                if main.ending:
                    raise
                continue  # a thread has cancelled all tasks; they go on
            for task in ended:
                task.result()

    async def _work(self, number: int) -> None:
        call_once = self._callers()
        alone = self._alone
        try:
            while lines := self._again.pop() if alone else self._collector.take():
                self._has_taken = True
                self._in_flight[number] = lines
                self._collector.put(await call_once(lines))
                del self._in_flight[number]
                if alone:
                    return
                while self._collector.full:
                    await asyncio.sleep(_LOOK_SECONDS)
        except (PauseEnded, StopRun) as error:  # the other calls go on
            self._collector.end(error)

    def cancel(self) -> None:
        """Cancel the calls in flight; harmless after the end."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            try:
                for task in self._tasks:
                    loop.call_soon_threadsafe(task.end)
            except RuntimeError:  # the loop was closed in the meantime
                return

"""Async mode: ``async def`` operators, thousands of calls in flight on one event loop.

The loop runs in a separate thread. So it works in notebooks, where a loop is already running, and
interrupts reach the main thread at once.
"""

import asyncio
from functools import partial

from dagster_dataops.concurrency.garbage import collected_rarely
from dagster_dataops.concurrency.waitable_thread import WaitableThread
from dagster_dataops.execution.backends.collector import Collector
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.records.async_settle import async_settlers
from dagster_dataops.execution.records.lifecycle import context_of, opened
from dagster_dataops.execution.records.retries import PauseEnded, Retries
from dagster_dataops.execution.timeouts.event_loop import event_loop, run_through
from dagster_dataops.operators.outcomes.record_context import StopRun


def run(job: Job) -> None:
    """Settle the open records of a job.

    Raises:
        RecordError: A record failed and failures are not ignored.
        RunStoppedError: Too many cancelled calls are still running.
    """
    collector = Collector(job)
    retries = Retries(job.settings, collector.pause, collector.breaker)
    calls = _Calls(job, collector, retries)
    thread = WaitableThread(calls.run, job.name)
    thread.start()
    try:
        with collected_rarely():
            collector.watch([thread])
    finally:
        calls.cancel()
        collector.close()
        retries.report(job.context.progress)


class _Calls:
    """The calls in flight: one task for each worker, which takes the next line when it is free."""

    def __init__(self, job: Job, collector: Collector, retries: Retries) -> None:
        self._collector = collector
        self._operator = job.operator
        self._retries = retries
        self._workers = job.settings.max_workers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def run(self) -> None:
        context = context_of(self._operator)
        try:
            with event_loop() as loop:
                run = partial(run_through, loop)
                with opened(self._operator, run, context) as own:
                    self._settlers = async_settlers(own, context, self._retries)
                    run(self._run())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            self._collector.end(error)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self._workers)]
        await asyncio.gather(*self._tasks)

    async def _work(self) -> None:
        settle = self._settlers()
        try:
            while lines := self._collector.take():
                self._collector.put(await settle(lines))
        except (PauseEnded, StopRun) as error:  # the other calls go on
            self._collector.end(error)

    def cancel(self) -> None:
        """Cancel the calls in flight; harmless after the end."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            try:
                for task in self._tasks:
                    loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:  # the loop was closed in the meantime
                return

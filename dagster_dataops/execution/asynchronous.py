"""Async mode: ``async def`` operators, thousands of calls in flight on one event loop.

The loop has a thread of its own, so that it works inside notebooks, where a loop is running
already, and so that interrupts reach the main thread at once.
"""

import asyncio
import threading

from dagster_dataops.execution.collecting import Collector
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.settling import async_settler, run_through


def run_async(job: Job) -> None:
    """Settle everything that is to do.

    Raises:
        RecordError: A record failed and failures are not ignored.
    """
    collector = Collector(job)
    calls = _Calls(job, collector)
    thread = threading.Thread(target=calls.run, name=job.name, daemon=True)
    thread.start()
    try:
        collector.watch([thread])
    finally:
        calls.cancel()
        collector.close()


class _Calls:
    """The calls in flight: one task a worker, each taking the next line when it is free."""

    def __init__(self, job: Job, collector: Collector) -> None:
        self._collector = collector
        self._settle = async_settler(job.operator)
        self._workers = job.settings.max_workers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                run_through(runner.get_loop(), self._run())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            self._collector.fail(error)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self._workers)]
        await asyncio.gather(*self._tasks)

    async def _work(self) -> None:
        while (line := self._collector.take()) is not None:
            self._collector.put(line, await self._settle(line.text))

    def cancel(self) -> None:
        """Cancel what is in flight; harmless once everything has ended."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            try:
                for task in self._tasks:
                    loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:  # the loop closed in between
                return

"""Event loops for operators: time limits of coroutines, and an end that cannot be delayed."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

from typing_extensions import override

from dagster_dataops.execution.timeouts.record_timeout import RecordTimeout, Stuck
from dagster_dataops.operators.outcomes.record_context import current_waited

T = TypeVar("T")
_GRACE_SECONDS: Final = 1.0
_left_behind: Final[set[asyncio.Task[Any]]] = set()


class _Threads(ThreadPoolExecutor):
    """The threads of ``asyncio.to_thread``.

    Attributes:
        used: Whether any was started.
    """

    used = False

    @override
    def submit(self, *args: Any, **named: Any) -> Future[Any]:
        self.used = True
        return super().submit(*args, **named)


@contextmanager
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Yield a new event loop; at the end cancel its running tasks.

    Tasks that do not end are abandoned after a second. `asyncio.Runner` would wait for them, and
    for threads of ``asyncio.to_thread``, without limit.
    """
    loop = asyncio.new_event_loop()
    threads = _Threads(thread_name_prefix="asyncio")
    loop.set_default_executor(threads)
    try:
        yield loop
    finally:
        try:
            _cancel_all(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
            _end(threads)


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        ended, running = run_through(loop, asyncio.wait(tasks, timeout=_GRACE_SECONDS))
        for task in ended:
            _ignore(task)
        _left_behind.update(running)  # otherwise asyncio warns when they are collected


def _ignore(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a task, so that asyncio does not warn."""
    if not task.cancelled():
        task.exception()


def _end(threads: _Threads) -> None:
    threads.shutdown(wait=False, cancel_futures=True)
    if not threads.used:
        return
    waiting = threading.Thread(target=threads.shutdown, daemon=True)
    waiting.start()
    waiting.join(_GRACE_SECONDS)


def run_through(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` to its end, even if a task that it started calls ``sys.exit()``.

    The loop raises that ``SystemExit`` in its caller at once.
    """
    task = loop.create_task(coroutine)
    while True:
        try:
            return loop.run_until_complete(task)
        except SystemExit:
            if task.done():
                return task.result()


async def _ended(coroutine: Coroutine[Any, Any, T]) -> tuple[T | None, BaseException | None]:
    """Return the result or exception of ``coroutine``: some exceptions stop asyncio's loop."""
    try:
        return await coroutine, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        return None, error


async def within(seconds: float, coroutine: Coroutine[Any, Any, T], stuck: Stuck) -> T:
    """Return the result of ``coroutine``; cancel it when its time is over.

    Args:
        seconds: Time limit, without the time in ``context.waiting()``.
        coroutine: The coroutine; one that blocks its loop cannot be cancelled.
        stuck: Receives the coroutine if it goes on although it was cancelled.

    Raises:
        RecordTimeout: The coroutine took longer.
        TooManyStuckError: Too many cancelled coroutines are still running.
    """
    task = asyncio.ensure_future(_ended(coroutine))
    try:
        began, left = time.monotonic(), seconds
        done: set[asyncio.Future[Any]] = set()
        while left > 0 and not done:  # again if it has waited outside its time
            done, _ = await asyncio.wait({task}, timeout=left)
            left = seconds - (time.monotonic() - began - current_waited())
        if done:
            returned, raised = task.result()
            if raised is not None:
                raise raised
            return cast("T", returned)
        task.cancel()
        await asyncio.wait({task}, timeout=_GRACE_SECONDS)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not task.done():
        task.add_done_callback(stuck.discard)
        stuck.add(task)
    else:
        _ignore(task)
    raise RecordTimeout(seconds)

"""Event loops for operators: time limits of coroutines, and an end that cannot be delayed."""

import asyncio
import selectors
import socket
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar, cast

from dagster_dataops.execution.timeouts.call_task import CallTask
from dagster_dataops.execution.timeouts.record_timeout import RecordTimeout, Stuck
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.outcomes.record_context import current_waited

T = TypeVar("T")
_GRACE_SECONDS: Final = 1.0
_CLOSED: Final = "the operator closed the event loop that all calls share, or a part of it"
_STOPPED: Final = "stopped before"  # in the text of the exception after ``loop.stop()``
_left_behind: Final[set[asyncio.Task[Any]]] = set()


class LoopClosedError(BaseException):
    """An operator has closed the event loop that its calls share."""

    def __init__(self, text: str = _CLOSED) -> None:
        super().__init__(text)


class _Threads(ThreadPoolExecutor):
    """The threads of ``asyncio.to_thread``."""

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
            with suppress(LoopClosedError):  # the last call has closed a part of it
                _cancel_all(loop)
                if not loop.is_closed():
                    run_through(loop, loop.shutdown_asyncgens())
        finally:
            _close(loop)
            _end(threads)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Close a loop, even if an operator has closed its selector or one of its sockets."""
    with suppress(Exception):
        loop.close()
    if loop.is_closed():
        return
    for part in list(vars(loop).values()):
        if isinstance(part, (socket.socket, selectors.BaseSelector)):
            with suppress(Exception):
                part.close()
    with suppress(Exception):
        asyncio.BaseEventLoop.close(cast("asyncio.BaseEventLoop", loop))


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    if loop.is_closed():
        _left_behind.update(tasks)
        return
    for task in tasks:
        if isinstance(task, CallTask):
            task.end()
        else:
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
    """Run ``coroutine`` to its end, even if a task that it started stops the loop.

    A task stops it by ``loop.stop()``, and by ``sys.exit()``, which the loop raises at once.

    Raises:
        LoopClosedError: An operator has closed or broken the loop.
    """
    if loop.is_closed():
        coroutine.close()
        raise LoopClosedError
    task = CallTask(coroutine, loop, within_call=True)
    try:
        while not task.done():
            _run_on(loop, task)
    except LoopClosedError:
        loop.set_exception_handler(lambda *_: None)  # asyncio warns when it collects the task
        with suppress(Exception):
            coroutine.close()
        raise
    return task.result()


def _run_on(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    """Run a loop until a task has ended, or something has stopped the loop."""
    try:
        loop.run_until_complete(task)
    except SystemExit:
        pass
    except KeyboardInterrupt:
        if threading.current_thread() is threading.main_thread():
            raise  # else it is an exception of the operator: signals reach the main thread
    except Exception as error:
        if not task.done() and _STOPPED not in str(error):
            _close(loop)
            raise LoopClosedError from error
    except asyncio.CancelledError:  # of the task, which is done
        pass
    if loop.is_closed() and not task.done():
        raise LoopClosedError


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
    task = CallTask(_ended(coroutine), within_call=True)
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

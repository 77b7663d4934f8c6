"""Run concurrent calls of a function in threads, processes or an event loop."""

import asyncio
import inspect
import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Callable
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from typing import Any, Final, TypeAlias

import cloudpickle

from dagster_dataops.foundation.concurrency.fork_safety import leave_inherited_garbage, may_fork
from dagster_dataops.foundation.concurrency.sent_code import pickled


class PoolCaller:
    """Call a function in the threads or the processes of a pool."""

    def __init__(self, pool: Executor, call: Callable[[Any], Any]) -> None:
        self._pool, self._call = pool, call

    def submit(self, item: Any) -> "Future[Any]":
        """Start a call for ``item``."""
        return self._pool.submit(self._call, item)

    def close(self) -> None:
        """Cancel the calls that have not started; running calls may finish."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def thread_caller(function: Callable[[Any], Any], workers: int) -> PoolCaller:
    """Return a caller in threads of this process; suits functions that wait for I/O."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="stream-map")
    return PoolCaller(pool, partial(_call_guarded, function))


def process_caller(function: Callable[[Any], Any], workers: int) -> PoolCaller:
    """Return a caller in processes; suits functions that compute.

    The function, the items and the results are pickled.
    """
    context = multiprocessing.get_context("fork" if may_fork() else "spawn")
    payload = pickled(function)
    return PoolCaller(ProcessPoolExecutor(workers, context, _receive, (payload,)), _call_received)


class EventLoopCaller:
    """Await coroutine functions on an event loop in a separate thread."""

    def __init__(self, function: Callable[[Any], Any], workers: int) -> None:
        self._function = function
        self._loop = asyncio.new_event_loop()
        self._places = asyncio.Semaphore(workers)
        self._thread = threading.Thread(target=self._run, name="stream-map", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._cancel_others())
            self._loop.close()

    async def _cancel_others(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def submit(self, item: Any) -> "Future[Any]":
        """Start a call for ``item``."""
        future: Future[Any] = Future()
        asyncio.run_coroutine_threadsafe(self._complete(item, future), self._loop)
        return future

    async def _complete(self, item: Any, future: "Future[Any]") -> None:
        """Set the result of a call, or its error: raised here, some errors would end the loop."""
        try:
            async with self._places:
                result = await self._function(item)
        except asyncio.CancelledError:
            future.set_exception(CancelledError("the call was cancelled"))
        except StopIteration as error:
            future.set_exception(_stopped(error))
        except BaseException as error:  # noqa: BLE001 - raised again in the reading thread
            future.set_exception(error)
        else:
            future.set_result(result)

    def close(self) -> None:
        """Cancel all calls."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


Caller: TypeAlias = PoolCaller | EventLoopCaller

_CALLERS: Final[dict[str, Callable[[Callable[[Any], Any], int], Caller]]] = {
    "thread": thread_caller,
    "process": process_caller,
    "async": EventLoopCaller,
}


def caller_for(function: Callable[[Any], Any], workers: int, mode: str | None) -> Caller:
    """Return a caller that runs up to ``workers`` calls of ``function`` at once.

    Without a mode, coroutine functions are awaited and other functions are called in threads.
    """
    default = "async" if inspect.iscoroutinefunction(function) else "thread"
    return _CALLERS[mode or default](function, workers)


def _call_guarded(function: Callable[[Any], Any], item: Any) -> Any:
    try:
        return function(item)
    except StopIteration as error:  # the caller of result() would take it for the end of the stream
        raise _stopped(error) from error


def _stopped(error: StopIteration) -> RuntimeError:
    replacement = RuntimeError("the function raised StopIteration")
    replacement.__cause__ = error
    return replacement


_received: list[Callable[[Any], Any]] = []


def _receive(payload: bytes) -> None:
    leave_inherited_garbage()
    threading.Thread(target=_exit_with_parent, name="stream-map-parent-watch", daemon=True).start()
    _received[:] = [cloudpickle.loads(payload)]


def _exit_with_parent() -> None:
    """Exit this worker process when its parent exits, even if the parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _call_received(item: Any) -> Any:
    return _call_guarded(_received[0], item)

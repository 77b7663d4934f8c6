"""CallTask: a task of an event loop that only its own call, or the run, can cancel.

Operators share one event loop. A call may leave a cancellation behind: it cancels its own task and
returns, enters a timeout and never leaves it, or cancels all tasks of the loop. Without this class
that would end the calls of other records.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from dagster_dataops.foundation.override import override

T = TypeVar("T")
_WHY: Final = (
    "the task of the call was cancelled: by asyncio.current_task().cancel(), or by a timeout or "
    "cancel scope that was not left; leave each scope in the call that enters it (async with)"
)
_caller: Final[ContextVar[object]] = ContextVar("_caller", default=None)  # the call that runs here


class CallTask(asyncio.Task[T]):
    """A task that makes calls, one after the other, or a part of one call.

    Args:
        coroutine: What to run.
        loop: The event loop; by default the running one.
        within_call: Whether the task is a part of the present call, and ends with it.
    """

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        loop: asyncio.AbstractEventLoop | None = None,
        *,
        within_call: bool = False,
    ) -> None:
        self._within = within_call
        self._call = _caller.get() if within_call else None
        self.ending = self._asked = False  # to be cancelled: by the run, by `end`; by the call
        super().__init__(coroutine, loop=loop)

    def end(self) -> None:
        """Cancel the task for the run."""
        self.ending = True
        super().cancel()

    @override
    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the task if its present call asks for it, or a thread; else do nothing."""
        caller = _caller.get()
        allowed = caller is self._call or caller is None
        if not allowed or (self._call is None and not self._within):
            return False
        self._asked = True
        return super().cancel(msg)

    @override
    def result(self) -> T:
        """Return the result; say why the task was cancelled, if its call did that."""
        try:
            return super().result()
        except asyncio.CancelledError as error:
            if not self.cancelling() or self.ending or error.args:
                raise
            raise asyncio.CancelledError(_WHY) from error

    async def make(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Make a call in this task; return what it returns.

        Raises:
            CancelledError: The call has cancelled the task, or the run ends the task.
        """
        self._call, self._asked = call, False
        _caller.set(call)
        try:
            returned = await call
        except asyncio.CancelledError as error:
            # Otherwise it is an exception of the operator.
            was_cancelled = self.cancelling() and not self.ending
            await self._clear()
            if was_cancelled and not error.args:
                raise asyncio.CancelledError(_WHY) from error
            raise
        except BaseException:
            await self._clear()
            raise
        if self._asked and await self._clear():
            raise asyncio.CancelledError(_WHY)
        self._call = None
        return returned

    async def _clear(self) -> bool:
        """Forget the call and its cancellations; return whether one was still to be delivered."""
        self._call = None
        if self.ending or not self._asked:  # `uncancel()` may have left the request pending
            return False
        pending = False
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            pending = True
        if self.ending:
            raise asyncio.CancelledError
        while self.cancelling():
            self.uncancel()
        return pending


def call_maker() -> Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]:
    """Return the function that makes calls in the present task, which may be of any class."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs yet
        return _plain
    return task.make if isinstance(task, CallTask) else _plain


def _plain(call: Coroutine[Any, Any, Any]) -> Awaitable[Any]:
    return call

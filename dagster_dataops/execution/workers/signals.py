"""Signals in worker processes: on SIGTERM a worker writes its finished records and ends.

On SIGUSR2 it first ends the calls that it has begun.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
DRAIN: Final = signal.SIGUSR2
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, DRAIN)


class Terminated(BaseException):
    """SIGTERM arrived: write the finished records and end."""


class Termination:
    """Turn SIGTERM into an exception that is raised only inside ``with`` blocks of this object.

    These blocks surround the operator's calls and the wait for messages. After a signal at any
    other time, the exception is raised at the start of the next block.

    Attributes:
        requested: Whether a signal has arrived since the worker began.
    """

    def __init__(self) -> None:
        self._handle_ready = False
        self._waiting = False
        self.requested = False
        self._raised = False

    def install(self) -> None:
        """Ignore Ctrl-C, which the parent handles, and handle SIGTERM and SIGUSR2."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self.request)
        signal.signal(DRAIN, self.request_drain)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def request(self, _number: int, _frame: FrameType | None) -> None:
        """Handle the signal."""
        self.requested = True
        if self._handle_ready:
            self._raised = True
            raise Terminated

    def request_drain(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal to end after the call that has begun."""
        if self._waiting:
            self.request(number, frame)
        self.requested = True  # raised at the start of the next block

    def __enter__(self) -> None:
        self._handle_ready = True
        if self.requested:
            raise Terminated

    def __exit__(self, *_: object) -> None:
        self._handle_ready = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Be in a block of this object that waits for a message; no call is begun."""
        self._waiting = True
        try:
            with self:
                yield
        finally:
            self._waiting = False

    def during(self, call: Callable[P, T]) -> Callable[P, T]:
        """Return ``call`` inside a block of this object.

        An operator may catch the exception with a bare ``except:``. Its result for that record and
        all later results do not count.
        """

        def interruptible(*args: P.args, **named: P.kwargs) -> T:
            with self:
                returned = call(*args, **named)
                if self._raised and getattr(returned, "interrupt", None) is None:
                    raise Terminated
                return returned

        return interruptible


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Delay Ctrl-C, SIGTERM and SIGUSR2 until the end of the block.

    A process that is started in the block delays them until `set_signals`. Otherwise a handler of
    its parent could raise an exception in the copy of the parent's code.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def set_signals() -> Termination:
    """Ignore Ctrl-C, handle SIGTERM, and return the object that does."""
    termination = Termination()
    termination.install()
    return termination

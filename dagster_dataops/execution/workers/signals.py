"""Signals in worker processes: on SIGTERM a worker settles its finished records and ends."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from dagster_dataops.execution.records.settle import Settle, Stretch

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Terminated(BaseException):
    """SIGTERM arrived: settle the finished records and end."""


class Termination:
    """Turn SIGTERM into an exception that is raised only inside ``with`` blocks of this object.

    These blocks surround the operator's calls and the wait for messages. After a signal at any
    other time, the exception is raised at the start of the next block.
    """

    def __init__(self) -> None:
        self._welcome = False
        self._requested = False
        self._raised = False

    def install(self) -> None:
        """Ignore Ctrl-C, which the parent handles, and handle SIGTERM."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self.request)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def request(self, _number: int, _frame: FrameType | None) -> None:
        """Handle the signal."""
        self._requested = True
        if self._welcome:
            self._raised = True
            raise Terminated

    def __enter__(self) -> None:
        self._welcome = True
        if self._requested:
            raise Terminated

    def __exit__(self, *_: object) -> None:
        self._welcome = False

    def during(self, settle: Settle) -> Settle:
        """Return ``settle`` inside a block of this object.

        An operator may catch the exception with a bare ``except:``. Its result for that record and
        all later results do not count.
        """

        def interruptible(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:
            with self:
                stretch = settle(lines, output, until)
                if self._raised and stretch.interrupt is None:
                    raise Terminated
                return stretch

        return interruptible


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the end of the block.

    A process that is started in the block delays them until `set_signals`. Otherwise a handler of
    its parent could raise an exception in the copy of the parent's code.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def set_signals() -> Termination:
    """Ignore Ctrl-C, handle SIGTERM, and return the object that does."""
    termination = Termination()
    termination.install()
    return termination

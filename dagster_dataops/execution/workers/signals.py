"""Termination: how a worker takes SIGTERM, settling what is finished before it ends."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from dagster_dataops.execution.records.settle import Settle, Stretch

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Terminated(BaseException):
    """SIGTERM: settle what is finished and leave."""


class Termination:
    """SIGTERM as an exception, raised only where it does no harm.

    That is inside this object's ``with`` blocks: in the operator, and while waiting for orders.
    Elsewhere it waits for the next block.
    """

    def __init__(self) -> None:
        self._welcome = False
        self._requested = False
        self._raised = False

    def install(self) -> None:
        """Leave Ctrl-C to the parent, and take SIGTERM."""
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
        """Return ``settle``, within a block of this.

        An operator may catch what is raised, with a bare ``except:``. What it makes of its record
        then is no outcome, nor is what came after.
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
    """Have Ctrl-C and SIGTERM wait for the end of the block.

    A process started inside it holds them back until `set_signals`: an exception that a handler
    of its parent raises there would come out in a copy of the parent.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def set_signals() -> Termination:
    """Leave Ctrl-C to the parent; on SIGTERM settle what is finished and end."""
    termination = Termination()
    termination.install()
    return termination

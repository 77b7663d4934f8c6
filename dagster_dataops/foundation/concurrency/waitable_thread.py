"""WaitableThread: a daemon thread whose end can be waited for in spite of interrupts."""

import threading
from collections.abc import Callable

from dagster_dataops.foundation.override import override


class WaitableThread(threading.Thread):
    """A daemon thread whose end can be waited for in spite of interrupts.

    `threading.Thread.join` cannot be used for that before Python 3.13: if a signal handler raises
    an exception while it waits, it marks the thread as ended, although the thread is still running.
    """

    def __init__(self, work: Callable[[], object], name: str) -> None:
        super().__init__(target=work, name=name, daemon=True)
        self._end = threading.Event()

    @property
    def ended(self) -> bool:
        """Whether the function has returned."""
        return self._end.is_set()

    @override
    def run(self) -> None:
        try:
            super().run()
        finally:
            self._end.set()

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the end of the function; return whether it has ended."""
        return self._end.wait(seconds)

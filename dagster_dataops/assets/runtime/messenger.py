"""Messenger: tells Dagster things beside the work, since its database may be slow or away."""

import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from dagster_dataops.concurrency.fork_safety import may_fork

_LOG: Final = logging.getLogger("dagster_dataops")


class Messenger:
    """Runs calls one after the other in a thread that ends as soon as none is left.

    Where the process has no other thread, as in a script, it runs them at once: with a thread of
    ours it could not fork worker processes. A call that raises is logged and forgotten.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether a call is under way or waits; who has nothing urgent to tell then waits too."""
        return self._thread is not None

    def send(self, call: Callable[[], object]) -> None:
        """Have ``call`` run after those sent before."""
        if not self.busy and may_fork():
            _run(call)
            return
        with self._lock:
            self._waiting.append(call)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="dataops-messenger", daemon=True
                )
                self._thread.start()

    def _work(self) -> None:
        # Signals are the main thread's: it would not wake up for one that is delivered here.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        while (call := self._next()) is not None:
            _run(call)

    def _next(self) -> Callable[[], object] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._thread = None
            return None

    def wait(self, seconds: float) -> bool:
        """Wait until everything was told, at most so long; return whether it was."""
        until = time.monotonic() + seconds
        while (thread := self._thread) is not None and (left := until - time.monotonic()) > 0:
            thread.join(left)
        return not self.busy

    def finish(self, seconds: float) -> None:
        """Wait until everything was told, at most so long; what waits still is dropped."""
        if not self.wait(seconds):
            with self._lock:
                self._waiting.clear()


def _run(call: Callable[[], object]) -> None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever a database raises, the work goes on
        with suppress(Exception):  # the log may lead to that very database
            _LOG.warning("Dagster could not be told: %s: %s", type(error).__name__, error)

"""Run blocking system calls in background threads.

Fsyncing a file waits for the disk. Deleting a file can also wait: about a second per few hundred
megabytes. The threads hold no locks while they wait, so the process may fork meanwhile.
"""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from dagster_dataops.foundation.concurrency.fork_safety import register_waiting_threads


class Background:
    """Runs calls one after another in a thread that ends when no call is left.

    Args:
        name: The name of the thread.
        daemon: Whether the interpreter exits without waiting for the calls.
    """

    def __init__(self, name: str = "dataops-background", *, daemon: bool = False) -> None:
        self._name = name
        self._daemon = daemon
        self.forget()

    def forget(self) -> None:
        """Reset after a fork: the child has no thread, and the calls are the parent's."""
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.latest_id: int | None = None  # the native id of the last started thread

    def run(self, call: Callable[[], None]) -> None:
        """Run ``call`` in the background; an `OSError` is ignored."""
        with self._lock:
            self._waiting.append(call)
            self._see_to_it()

    def _see_to_it(self) -> None:
        """Start the thread if calls are waiting."""
        if self._waiting and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=self._daemon)
            self._thread.start()
            self.latest_id = self._thread.native_id

    def _work(self) -> None:
        # The main thread handles signals; it could not defer those delivered to this thread.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        while (call := self._next()) is not None:
            with suppress(OSError):
                call()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if not self._waiting:
                self._thread = None
                return None
            return self._waiting.popleft()

    @property
    def busy(self) -> bool:
        """Whether a call is running or waiting."""
        return self._thread is not None

    def drop(self) -> None:
        """Drop the waiting calls."""
        with self._lock:
            self._waiting.clear()

    def finish(self, seconds: float | None = None) -> bool:
        """Wait until all calls have run, or ``seconds`` have passed; return whether they have."""
        with self._lock:
            self._see_to_it()  # an interrupt may have prevented the start
            thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return not self.busy

    @property
    def native_id(self) -> int | None:
        """The native id of the running thread, if any."""
        thread = self._thread
        return thread.native_id if thread is not None and thread.is_alive() else None


background: Final = Background()  # for fsyncs
deleting: Final = Background()  # separate, so that no fsync waits for a deletion
os.register_at_fork(after_in_child=background.forget)
os.register_at_fork(after_in_child=deleting.forget)


def native_ids() -> set[int]:
    """Return the native ids of all background threads.

    Recently ended threads are included, because the kernel lists them a moment longer.
    """
    return {number for each in (background, deleting) if (number := each.latest_id) is not None}


register_waiting_threads(native_ids)

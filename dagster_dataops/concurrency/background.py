"""Background: system calls that only wait, made by threads beside the main one.

Syncing a file waits for the disk, and so can deleting one: a second for every few hundred
megabytes. The threads hold no lock while they wait, so that the process may be forked meanwhile.
"""

import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from dagster_dataops.concurrency.fork_safety import hinder_no_fork


class Background:
    """Runs what it is given, one after the other; the interpreter waits for it before it exits."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, in a forked child: there is no thread there, and its work is the parent's."""
        self._waiting: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.latest_id: int | None = None  # native id of the thread that was started last

    def run(self, call: Callable[[], None]) -> None:
        """Have ``call`` run; an `OSError` of it is nobody's concern."""
        with self._lock:
            self._waiting.append(call)
            self._see_to_it()

    def _see_to_it(self) -> None:
        """Start the thread if something waits for it."""
        if self._waiting and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._work, name="dataops-background")
            self._thread.start()
            self.latest_id = self._thread.native_id

    def _work(self) -> None:
        # Signals are the main thread's: it could not hold back what is delivered here.
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

    def finish(self) -> None:
        """Wait until everything has run."""
        with self._lock:
            self._see_to_it()  # an interrupt may have kept it from starting
            thread = self._thread
        if thread is not None:
            thread.join()

    @property
    def native_id(self) -> int | None:
        """The kernel's number of the thread, if there is one now."""
        thread = self._thread
        return thread.native_id if thread is not None and thread.is_alive() else None


background: Final = Background()  # for syncs
deleting: Final = Background()  # no sync, and no run that waits for one, is to wait for this
os.register_at_fork(after_in_child=background.forget)
os.register_at_fork(after_in_child=deleting.forget)


def native_ids() -> set[int]:
    """Return the kernel's numbers of the threads that there are.

    Those that have just ended count: the kernel shows them a moment longer.
    """
    return {number for each in (background, deleting) if (number := each.latest_id) is not None}


hinder_no_fork(native_ids)

"""Background: system calls that only wait, made by a thread beside the main one.

Syncing a file waits for the disk, and so can deleting one: a second for every few hundred
megabytes. The thread holds no lock while it waits, so that the process may be forked meanwhile.
"""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final


class Background:
    """Runs what it is given, one after the other; the interpreter waits for it before it exits."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def run(self, call: Callable[[], None]) -> None:
        """Have ``call`` run; an `OSError` of it is nobody's concern."""
        with self._lock:
            self._waiting.put(call)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="dataops-background")
                self._thread.start()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            with suppress(OSError):
                call()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if self._waiting.empty():
                self._thread = None
                return None
            return self._waiting.get()

    def finish(self) -> None:
        """Wait until everything has run."""
        thread = self._thread
        if thread is not None:
            thread.join()

    @property
    def native_id(self) -> int | None:
        """The kernel's number of the thread, if there is one now."""
        thread = self._thread
        return thread.native_id if thread is not None and thread.is_alive() else None


background: Final = Background()

"""`BackgroundWorks`: computations for pages in threads, with their progress."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from dagster_dataops.errors import DataOpsError

_MOST: Final = 48  # results that are held
_AT_ONCE: Final = 2
_PAGE_SECONDS: Final = 0.06  # that a page waits for work in all
_WORK_SECONDS, _PAUSE_SECONDS = 0.005, 0.02  # of work between pages, and of a pause at most


class StoppedWorkError(Exception):
    """The work was stopped."""


class PagesInProgress:
    """The pages that are being made. Work in the background pauses for them.

    A page waits for a short time in all, however much work it asks for.
    """

    def __init__(self) -> None:
        self._number = 0
        self._changed = threading.Condition()
        self._page = threading.local()  # `end`: until when the page of this thread waits

    @contextmanager
    def making(self) -> Iterator[None]:
        """Make a page in the block, in this thread."""
        self._page.end = time.monotonic() + _PAGE_SECONDS
        self._add(1)
        try:
            yield
        finally:
            self._page.end = None
            self._add(-1)

    def wait_for(self, work: "BackgroundWork", seconds: float) -> None:
        """Wait for the end of work; the page of this thread waits no longer than it may."""
        end = getattr(self._page, "end", None)
        if end is None:
            work.wait(seconds)
            return
        self._add(-1)  # the work goes on meanwhile
        try:
            work.wait(max(0.0, min(seconds, end - time.monotonic())))
        finally:
            self._add(1)

    def give_way(self, resumed: float) -> float:
        """Pause while pages are made, but only for a short time.

        Args:
            resumed: The time of the end of the last pause; a pause follows some time of work.

        Returns:
            The time of the end of the last pause.
        """
        if not self._number or time.monotonic() - resumed < _WORK_SECONDS:
            return resumed
        with self._changed:
            self._changed.wait_for(lambda: not self._number, _PAUSE_SECONDS)
        return time.monotonic()

    def _add(self, pages: int) -> None:
        with self._changed:
            self._number += pages
            self._changed.notify_all()


class BackgroundWork:
    """A computation in a thread.

    Attributes:
        done: The finished part, in the unit of ``total``.
        total: The whole, such as a number of bytes or records.
        result: The result; while it runs, the part that it has set.
        ready: Whether it has ended.
        error: The message of its failure; empty without one.
    """

    def __init__(self, pages: PagesInProgress) -> None:
        self._pages, self._resumed = pages, 0.0
        self.done, self.total = 0, 0
        self.result: Any = None
        self.error = ""
        self._ended, self._stopped = threading.Event(), threading.Event()

    @property
    def ready(self) -> bool:
        """Whether it has ended."""
        return self._ended.is_set()

    @property
    def percent(self) -> int:
        """The finished part in percent; 100 only once it has ended."""
        return 100 if self.ready else 99 * self.done // max(self.total, 1)

    def advance(self, done: int, total: int) -> None:
        """Set the progress, and pause if a page is being made.

        Raises:
            StoppedWorkError: It was stopped.
        """
        self.done, self.total = done, total
        if self._stopped.is_set():
            raise StoppedWorkError
        self._resumed = self._pages.give_way(self._resumed)

    def wait(self, seconds: float) -> bool:
        """Wait until it ends, or the time is over; return whether it has ended."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        """Ask it to end."""
        self._stopped.set()

    def run(
        self, function: "Callable[[BackgroundWork], Any]", places: AbstractContextManager[Any]
    ) -> None:
        """Wait for ``places``, call a function, and keep its result or error."""
        try:
            with places:
                result = function(self)
                self.result = self.result if result is None else result
        except StoppedWorkError:
            self.error = "it was stopped, as other work was wanted; load the page again"
        except (DataOpsError, OSError, ValueError, MemoryError) as error:
            self.error = str(error) or type(error).__name__
        except Exception as error:  # noqa: BLE001 - shown on the page
            self.error = f"{type(error).__name__}: {error}"
        finally:
            self._ended.set()


class BackgroundWorks:
    """The computations of a server, by key. The least recently used is stopped and removed."""

    def __init__(self) -> None:
        self.pages = PagesInProgress()
        self._works: OrderedDict[Hashable, BackgroundWork] = OrderedDict()
        self._lock = threading.Lock()
        self._places = threading.Semaphore(_AT_ONCE)

    def begun(
        self,
        key: Hashable,
        function: Callable[[BackgroundWork], Any],
        seconds: float = 0.1,
        *,
        urgent: bool = False,
    ) -> BackgroundWork:
        """Return the work with a key; start it if it is new, and wait some time for its end.

        Work that was begun before and has a part of its result is not waited for.

        ``key`` names the work and the content of all files that it reads. ``function``
        returns the result, or sets it in parts. With ``urgent``, it starts at once, also
        while other work runs.
        """
        with self._lock:
            work = self._works.pop(key, None)
            begins = work is None or bool(work.ready and work.error)
            if work is None or begins:
                work = BackgroundWork(self.pages)
            self._works[key] = work
            while len(self._works) > _MOST:
                self._works.popitem(last=False)[1].stop()
        if begins:
            places = nullcontext() if urgent else self._places
            threading.Thread(target=work.run, args=(function, places), daemon=True).start()
        if begins or work.result is None:  # else there is a part to show
            self.pages.wait_for(work, seconds)
        return work

    def stop(self) -> None:
        """Ask all work to end."""
        with self._lock:
            for work in self._works.values():
                work.stop()

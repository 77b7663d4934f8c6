"""`BackgroundWorks`: work that takes longer than a page may, with its progress."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from dagster_dataops.errors import DataOpsError

_MOST: Final = 48  # results that are held
_AT_ONCE: Final = 2


class StoppedWorkError(Exception):
    """The work is not wanted any more."""


class BackgroundWork:
    """One piece of work.

    Attributes:
        done: How much is done.
        total: How much there is to do.
        result: The result, or what is there of it.
        ready: Whether it has ended.
        error: Why it failed; empty if it did not.
    """

    def __init__(self) -> None:
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
        """The part that is done, in percent."""
        return 100 if self.ready else 99 * self.done // max(self.total, 1)

    def advance(self, done: int, total: int) -> None:
        """Note how much is done.

        Raises:
            StoppedWorkError: It is not wanted any more.
        """
        self.done, self.total = done, total
        if self._stopped.is_set():
            raise StoppedWorkError

    def wait(self, seconds: float) -> bool:
        """Wait for the end; return whether it has come."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        """Ask it to end."""
        self._stopped.set()

    def run(
        self, function: "Callable[[BackgroundWork], Any]", places: AbstractContextManager[Any]
    ) -> None:
        """Wait for a free place, then call the function."""
        try:
            with places:
                found = function(self)
                self.result = self.result if found is None else found
        except StoppedWorkError:
            self.error = "it was stopped, as other work was wanted; load the page again"
        except (DataOpsError, OSError, ValueError, MemoryError) as error:
            self.error = str(error) or type(error).__name__
        except Exception as error:  # noqa: BLE001 - shown on the page
            self.error = f"{type(error).__name__}: {error}"
        finally:
            self._ended.set()


class BackgroundWorks:
    """The work of a server, by key. The longest unused is stopped and forgotten."""

    def __init__(self) -> None:
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

        Args:
            key: It names the work and the content of all files that it reads.
            function: It gets the work, and returns the result, or sets it by and by.
            seconds: The time to wait.
            urgent: Whether it begins at once; other work waits for the end of what began before.
        """
        with self._lock:
            work = self._works.pop(key, None)
            begins = work is None or bool(work.ready and work.error)
            if work is None or begins:
                work = BackgroundWork()
            self._works[key] = work
            while len(self._works) > _MOST:
                self._works.popitem(last=False)[1].stop()
        if begins:
            places = nullcontext() if urgent else self._places
            threading.Thread(target=work.run, args=(function, places), daemon=True).start()
        work.wait(seconds)
        return work

    def stop(self) -> None:
        """Ask all work to end."""
        with self._lock:
            for work in self._works.values():
                work.stop()

"""Time limits of records: the exception, and the count of calls that do not end."""

import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from dagster_dataops.foundation.concurrency.stepping import EndsCall
from dagster_dataops.foundation.override import override
from dagster_dataops.records import Record

Forward: TypeAlias = Callable[[Record], object]
_FEWEST: Final = 100


class RecordTimeout(TimeoutError, EndsCall):  # noqa: N818 - the name stands in error files
    """A call on one record took longer than its time limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    @override
    def __str__(self) -> str:
        return (
            f"the call took longer than its limit of {self.seconds:g} s; raise _timeout if such a "
            "record needs longer, or set a time limit in the operator"
        )


class TooManyStuckError(BaseException):
    """Too many calls were abandoned and have not returned."""


class Stuck:
    """The calls that were abandoned and have not returned.

    Args:
        workers: Number of concurrent calls; with more calls, more may be abandoned.
    """

    def __init__(self, workers: int) -> None:
        self._most = max(_FEWEST, 4 * workers)
        self._lock = threading.Lock()
        self._calls: set[object] = set()

    def add(self, call: object) -> None:
        """Add a call that was abandoned.

        Raises:
            TooManyStuckError: There are too many.
        """
        with self._lock:
            self._calls.add(call)
            count = len(self._calls)
        if count > self._most:
            msg = (
                f"{count} calls are running long after their time limit and cannot be ended; set a "
                "time limit in the operator (such as that of its client), or use "
                "_concurrency_mode='process', where a stuck call is killed with its process"
            )
            raise TooManyStuckError(msg)

    def discard(self, call: object) -> None:
        """Remove a call that has returned."""
        with self._lock:
            self._calls.discard(call)

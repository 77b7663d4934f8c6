"""The base of cursors with concurrent calls."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from typing_extensions import override

from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.stage import Cursor, UnaryCursor

if TYPE_CHECKING:
    from dagster_dataops.streams.parallel.callers import Caller

END: Final = object()


class ConcurrentCalls(NamedTuple):
    """How to make concurrent calls.

    Attributes:
        new_caller: Returns a new `Caller`, which the cursor closes.
        at_once: The number of concurrent calls.
    """

    new_caller: "Callable[[], Caller]"
    at_once: int


class ParallelCursor(UnaryCursor):
    """A cursor that calls a function for several items at once.

    Args:
        upstream: The input.
        calls: How to make the calls.
        counter: Counts failed calls.
    """

    def __init__(self, upstream: Cursor, calls: ConcurrentCalls, counter: FailureCounter) -> None:
        super().__init__(upstream)
        self.calls = calls
        self.counter = counter
        self.failure: Exception | None = None  # of the input; raised after earlier results

    @override
    def items(self) -> Iterator[Any]:
        caller = self.calls.new_caller()
        self.failure = None
        try:
            yield from self.results(caller)
        finally:
            caller.close()
        if self.failure is not None:
            raise self.failure

    @abstractmethod
    def results(self, caller: "Caller") -> Iterator[Any]:
        """Yield the results of the calls; read the input with `next_item`."""

    def next_item(self, upstream: Iterator[Any]) -> Any:
        """Return the next item; `END` if the input ends or fails."""
        try:
            return next(upstream, END)
        except Exception as error:  # noqa: BLE001 - raised after the results before it
            self.failure = error
            return END

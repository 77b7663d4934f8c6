"""What cursors share that have a function called for several items at once."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from typing_extensions import override

from dagster_dataops.streams.core.item_failures import Counter
from dagster_dataops.streams.core.stage import Cursor, StepCursor

if TYPE_CHECKING:
    from dagster_dataops.streams.parallel.callers import Caller

END: Final = object()


class Calls(NamedTuple):
    """Who makes the calls.

    Attributes:
        caller: Returns who makes them; it is closed by whoever asked.
        at_once: How many are made at once.
    """

    caller: "Callable[[], Caller]"
    at_once: int


class ParallelCursor(StepCursor):
    """A cursor that has a function called for several items at once.

    Args:
        upstream: Where the items come from.
        calls: Who makes the calls, and how many at once.
        counter: Counts calls that fail.
    """

    def __init__(self, upstream: Cursor, calls: Calls, counter: Counter) -> None:
        super().__init__(upstream)
        self.calls = calls
        self.counter = counter
        self.failure: Exception | None = None  # of the upstream, raised behind what came before

    @override
    def items(self) -> Iterator[Any]:
        caller = self.calls.caller()
        self.failure = None
        try:
            yield from self.results(caller)
        finally:
            caller.close()
        if self.failure is not None:
            raise self.failure

    @abstractmethod
    def results(self, caller: "Caller") -> Iterator[Any]:
        """Yield what the calls return; an upstream that has ended says so by `pulled`."""

    def pulled(self, upstream: Iterator[Any]) -> Any:
        """Return the next item; the end, too, where the upstream fails."""
        try:
            return next(upstream, END)
        except Exception as error:  # noqa: BLE001 - raised when its turn has come
            self.failure = error
            return END

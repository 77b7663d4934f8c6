"""``map`` with concurrent calls."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from typing_extensions import override

from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.core.stage import Cursor, ReadContext, UnaryStage
from dagster_dataops.streams.parallel.ordered import OrderedCursor
from dagster_dataops.streams.parallel.parallel_cursor import ConcurrentCalls
from dagster_dataops.streams.parallel.unordered import UnorderedCursor
from dagster_dataops.streams.stages.mapping import Function, Map

if TYPE_CHECKING:
    from dagster_dataops.streams.parallel.callers import Caller

Mode: TypeAlias = Literal["thread", "process", "async"]
MODES: Final = ("thread", "process", "async")


@dataclass(frozen=True, eq=False)
class ParallelMap(UnaryStage):
    """`Map` with ``num_parallel_calls`` concurrent calls."""

    name: ClassVar[str] = "map"
    functions: tuple[Function, ...]
    selector: Selector | None
    num_parallel_calls: int
    deterministic: bool
    mode: Mode | None

    @override
    def open(self, context: ReadContext) -> Cursor:
        counter = context.failures.counter(self.name)
        kind = OrderedCursor if self.deterministic else UnorderedCursor
        calls = ConcurrentCalls(self.new_caller, self.num_parallel_calls)
        return kind(self.upstream.open(context), calls, counter)

    @override
    def options(self) -> dict[str, Any]:
        left_out = {"num_parallel_calls", "mode"}  # they do not change the items
        return {name: one for name, one in super().options().items() if name not in left_out}

    def new_caller(self) -> "Caller":
        """Return a new caller of the functions."""
        from dagster_dataops.streams.parallel.callers import (
            caller_for,  # event loops and pools take a while
        )

        plain = Map(self.upstream, self.functions, None)
        function = plain.function()
        if self.selector is not None:
            function = SelectorFunction(self.selector, function)
        return caller_for(function, self.num_parallel_calls, self.mode)


class SelectorFunction:
    """A picklable function that applies another one to the selected parts of an item."""

    def __init__(self, selector: Selector, function: Function) -> None:
        self._selector, self._function = selector, function

    def __call__(self, item: Any) -> Any:
        """Return a changed copy of ``item``."""
        return self._selector.map(self._function, item)

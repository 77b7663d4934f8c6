"""``map`` with concurrent calls."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from typing_extensions import override

from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.core.stage import UnaryStage
from dagster_dataops.streams.stages.mapping import Function, Map

if TYPE_CHECKING:
    from dagster_dataops.streams.parallel.callers import Caller

Mode: TypeAlias = Literal["thread", "process", "async"]
END: Final = object()
MODES: Final = ("thread", "process", "async")


@dataclass(eq=False)
class ParallelMap(UnaryStage):
    """`Map` with ``num_parallel_calls`` concurrent calls."""

    name: ClassVar[str] = "map"
    deterministic: ClassVar[bool]
    functions: tuple[Function, ...]
    selector: Selector | None
    num_parallel_calls: int
    mode: Mode | None

    @override
    def options(self) -> dict[str, Any]:
        left_out = {"num_parallel_calls", "mode"}  # they do not change the items
        found = {name: one for name, one in super().options().items() if name not in left_out}
        return {**found, "deterministic": self.deterministic}

    @override
    def items(self) -> Iterator[Any]:
        caller = self.new_caller()
        self.failure: Exception | None = None  # of the input; raised after earlier results
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

    def new_caller(self) -> "Caller":
        """Return a new caller of the functions."""
        from dagster_dataops.streams.parallel.callers import (
            caller_for,  # event loops and pools take a while
        )

        function = Map(self.upstream, self.functions, None).function()
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

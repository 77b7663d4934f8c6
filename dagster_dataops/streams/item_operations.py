"""Operations that call a function for each item."""

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from typing import Any, Self

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.core.arguments import check_callable, check_count
from dagster_dataops.streams.parallel.ordered import OrderedMap
from dagster_dataops.streams.parallel.parallel_map import MODES, Mode
from dagster_dataops.streams.parallel.unordered import UnorderedMap
from dagster_dataops.streams.stage_chain import StageChain, as_selector
from dagster_dataops.streams.stages.flattening import YieldFrom
from dagster_dataops.streams.stages.mapping import Filter, Function, Map


class ItemOperations(StageChain):
    """The operations that map, filter and flatten a stream."""

    def map(
        self,
        fn: Function | SequenceOf[Function],
        selector: str | Selector | None = None,
        num_parallel_calls: int = 1,
        deterministic: bool = True,
        mode: Mode | None = None,
    ) -> Self:
        """Apply a function to each item.

        Args:
            fn: A function, or several functions to apply in order.
            selector: The elements of the item to change, such as ``foo[1].y,bar``; the whole item
                if ``None``. The original item is not changed.
            num_parallel_calls: The number of concurrent calls.
            deterministic: Whether to yield results in item order, or as they finish.
            mode: ``thread`` (default), ``process`` or ``async`` (default for coroutine functions).

        Raises:
            SelectorSyntaxError: The selector is malformed.
            StreamDefinitionError: An argument is invalid.
        """
        functions = tuple(fn) if isinstance(fn, (list, tuple)) else (fn,)
        for function in functions:
            check_callable("map", "fn", function)
        check_count("map", "num_parallel_calls", num_parallel_calls, 1)
        if mode is not None and mode not in MODES:
            raise StreamDefinitionError("map", f"mode is {mode!r}; it must be one of {MODES}")
        chosen = as_selector(selector)
        waits = len(functions) == 1 and _is_coroutine(functions[0])
        if waits and (selector is not None or mode not in {None, "async"}):
            reason = "a coroutine function takes the whole item and runs in mode 'async'"
            raise StreamDefinitionError("map", reason)
        if mode == "async" and not waits:
            raise StreamDefinitionError("map", "mode 'async' takes one coroutine function")
        if num_parallel_calls == 1 and mode is None and not waits:
            return self.then(Map(self.stage, functions, chosen))
        parallel = OrderedMap if deterministic else UnorderedMap
        return self.then(parallel(self.stage, functions, chosen, num_parallel_calls, mode))

    def filter(self, fn: Function, selector: str | Selector | None = None) -> Self:
        """Keep the items for which ``fn`` of the item, or of its selected part, is true."""
        check_callable("filter", "fn", fn)
        return self.then(Filter(self.stage, fn, as_selector(selector)))

    def yield_from(self, fn: Callable[[Any], Any]) -> Self:
        """Yield the items of the finite stream that ``fn`` returns for each item."""
        check_callable("yield_from", "fn", fn)
        return self.then(YieldFrom(self.stage, fn))


def _is_coroutine(function: Function) -> bool:
    import inspect  # takes a while

    return inspect.iscoroutinefunction(function)

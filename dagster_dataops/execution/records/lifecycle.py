"""Open and close operators: once per worker process, thread or event loop."""

import copy
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dagster_dataops.datasets.lines import Interval, count_records, interval_of
from dagster_dataops.errors import OperatorOpenError
from dagster_dataops.foundation.places.opening import open_readable
from dagster_dataops.foundation.places.range_source import Readable, close_readable
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes.column_watch import ColumnWatch
from dagster_dataops.operators.outcomes.record_context import OperatorContext

if TYPE_CHECKING:
    from dagster_dataops.operators.chains.chain import Chain
    from dagster_dataops.operators.chains.chain_calls import PartTimes
    from dagster_dataops.operators.outcomes.change_watch import ChangeWatch


def context_of(operator: Operator) -> OperatorContext | None:
    """Return the context of an operator in a run; ``None`` if it asks for none."""
    link = operator.__dataops__.link
    if link is None:
        return None
    index_of = _RecordIndex(Path(link.facts.input)).at
    return OperatorContext(
        link.facts, link.clients, index_of, lambda: operator.__dataops__.secrets.hide_values
    )


def part_times(operator: Operator) -> "PartTimes | None":
    """Return the object that adds up the seconds of a chain's parts; ``None`` without a chain."""
    parts = operator.__dataops__.spec.parts
    if not parts:
        return None
    from dagster_dataops.operators.chains.chain_calls import PartTimes  # only for chains

    return PartTimes(len(parts))


def measured(
    times: "PartTimes | None", watch: ColumnWatch | None, changes: "ChangeWatch | None" = None
) -> Callable[[], Mapping[str, float]] | None:
    """Return the function that takes what was measured around the calls; ``None`` for nothing."""
    takes = [measure.take for measure in (times, watch, changes) if measure is not None]
    if len(takes) < 2:
        return takes[0] if takes else None
    return lambda: {name: number for take in takes for name, number in take().items()}


class _RecordIndex:
    """Counts the records before a byte position of a file; from the last position it was asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._source: Readable | None = None
        self._position = self._records = 0

    def at(self, position: int) -> int:
        """Return the number of records before ``position``."""
        with self._lock:
            if self._source is None:
                self._source = open_readable(self._path)
                self._begin(self._source)
            elif position < self._position:
                self._begin(self._source)
            between = Interval(self._position, position)
            self._records += count_records(self._source, between)
            self._position = position
            return self._records

    def _begin(self, source: Readable) -> None:
        self._position, self._records = interval_of(source, self._path).start, 0

    def __del__(self) -> None:
        if self._source is not None:
            with suppress(OSError):
                close_readable(self._source)


@contextmanager
def opened(
    operator: Operator, run: Callable[[Any], Any], context: OperatorContext | None
) -> Iterator[Operator]:
    """Yield the operator to call; a copy that is open where the operator has ``open`` or ``close``.

    Each thread and process has a copy of its own, so that ``open`` can set attributes. The parts of
    a chain are opened in order and closed in reverse.

    Args:
        operator: The operator.
        run: Runs a coroutine to its end; for ``async def`` methods.
        context: Given to ``open``.

    Raises:
        OperatorOpenError: ``open`` failed.
    """
    if not operator.__dataops__.spec.opens:
        yield operator
        return
    if operator.__dataops__.spec.parts:
        chain = cast("Chain", operator)
        with ExitStack() as stack:
            parts = [stack.enter_context(opened(part, run, context)) for _, part in chain.parts]
            yield chain.with_parts(parts)
        return
    copied = copy.copy(operator)
    _call(copied, "open", run, context)
    try:
        yield copied
    finally:
        _call(copied, "close", run)


def _call(operator: Any, method: str, run: Callable[[Any], Any], *arguments: Any) -> None:
    function = getattr(operator, method, None)
    if function is None:
        return
    try:
        returned = function(*arguments)
        if inspect.isawaitable(returned):
            run(returned)
    except BaseException as error:
        from asyncio import CancelledError  # slow to import

        if not isinstance(error, (Exception, CancelledError)):
            raise
        name = operator.__dataops__.spec.qualified_name
        from dagster_dataops.execution.records.record_failures import text_and_traceback  # rare

        raise OperatorOpenError(name, method, *text_and_traceback(error, operator)) from error


def run_alone(coroutine: Any) -> Any:
    """Run a coroutine to its end in an event loop of its own."""
    from dagster_dataops.execution.timeouts.event_loop import event_loop, run_through

    with event_loop() as loop:
        return run_through(loop, coroutine)

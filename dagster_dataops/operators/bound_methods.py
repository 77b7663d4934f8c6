"""Return the methods of an operator as functions with all options bound."""

import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dagster_dataops.operators.definition.operator import Operator, init_parameters
from dagster_dataops.operators.kinds.kind_table import SELECTION
from dagster_dataops.operators.options.settings import ALLOWED, FAILING
from dagster_dataops.operators.outcomes.column_watch import ColumnWatch, Patience, WatchedPart
from dagster_dataops.operators.outcomes.record_context import Drop, OperatorContext
from dagster_dataops.records import Record

if TYPE_CHECKING:
    from dagster_dataops.operators.chains.chain_calls import PartTimes
    from dagster_dataops.operators.outcomes.change_watch import ChangeWatch

SKETCH: Final = SELECTION.recorded_as
CHANGE: Final = "change"


def record_function(
    operator: Operator,
    context: OperatorContext | None = None,
    times: "PartTimes | None" = None,
    watch: ColumnWatch | None = None,
    *,
    recorded: bool = True,
) -> Callable[..., Any]:
    """Return ``forward`` as a function of one record; a coroutine function if it is async.

    For an operator that takes batches it is ``forward_batch`` or ``forward_window``, a function of
    a list. Of a kind with `OperatorKind.recorded_as` it returns what the method
    returns under that key. That of an operator with named outputs returns `Disposed`.

    Args:
        operator: The operator.
        context: Given to ``forward`` if that takes one.
        times: Takes the seconds of the parts of a chain.
        watch: Notes what the records of the parts of a chain lack.
        recorded: Whether values are returned under the key, or else as they are.
    """
    spec = operator.__dataops__.spec
    if spec.parts:
        return _through_parts(operator, context, times, watch)
    function = plain_function(operator)
    if spec.takes_context:
        function = functools.partial(function, context=context)
    if operator.__dataops__.secrets:
        hide = functools.partial(_without_secrets, operator.__dataops__.secrets.hide_values)
        function = _followed(function, hide, asynchronous=spec.asynchronous)
    if recorded and (key := spec.kind.recorded_as):
        if not spec.batch and not spec.asynchronous:
            return lambda record: {key: function(record)}
        change: Callable[[Any, Any], Any] = lambda value, _: {key: value}  # noqa: E731
        if spec.batch:
            change = _under_key_each(key)
    elif spec.outputs:
        from dagster_dataops.operators.outcomes.named_outputs import routing  # rare

        change = routing(spec.outputs, batch=bool(spec.batch))
    else:
        return function
    return _followed(function, change, asynchronous=spec.asynchronous)


def _followed(
    function: Callable[[Any], Any], change: Callable[[Any, Any], Any], *, asynchronous: bool
) -> Callable[[Any], Any]:
    """Return ``function`` with ``change`` of what it returned and was given as its result."""
    if not asynchronous:
        return lambda record: change(function(record), record)

    async def followed(record: Any) -> Any:
        return change(await function(record), record)

    return followed


def column_watch(operator: Operator, patience: Patience | None = None) -> ColumnWatch | None:
    """Return the watch for the calls of one thread or task; ``None`` if nothing is to be watched.

    Args:
        operator: A record or a selection operator.
        patience: Of all tasks of the run.
    """
    invocation = operator.__dataops__
    rule = invocation.resolved.missing
    keys = [use.keys_read() for use in invocation.uses]
    if rule == ALLOWED or not any(keys):
        return None
    specs = [use.spec for use in invocation.uses]
    parts = [
        WatchedPart(read, spec.asynchronous, bool(spec.batch))
        for read, spec in zip(keys, specs, strict=True)
    ]
    chained = bool(invocation.spec.parts)
    return ColumnWatch(parts, chained=chained, strict=rule == FAILING, patience=patience)


def sketched_column(operator: Operator) -> str | None:
    """Return the column whose values are the sketches, where they are texts or finite numbers.

    It is ``None`` if ``sketch`` must be called for each record.
    """
    column = getattr(operator, "__dataops_sketched_column__", None)
    return None if column is None or operator.__dataops__.resolved.reuse_outcomes else column()


def change_watch(operator: Operator) -> "ChangeWatch | None":
    """Return what notes the columns that count for outcomes, for the calls of one thread or task.

    It is ``None`` if no outcomes are kept, or the whole record counts.
    """
    if not operator.__dataops__.resolved.reuse_outcomes:
        return None
    from dagster_dataops.operators.outcomes.change_watch import ChangeWatch  # only if kept
    from dagster_dataops.operators.read_terms import terms_of

    use = operator.__dataops__
    terms = terms_of(use)
    if terms is None:
        return None
    return ChangeWatch(terms, batch=bool(use.spec.batch), refusals=use.refusals)


def _without_secrets(hide: Callable[[str], str], returned: Any, _: object) -> Any:
    """Return what an operator returned, without secrets in the reason of a dropped record."""
    if isinstance(returned, Drop):
        return Drop(hide(str(returned.reason)))
    if isinstance(returned, list) and any(isinstance(entry, Drop) for entry in returned):
        return [_without_secrets(hide, entry, _) for entry in returned]
    return returned


def _through_parts(
    operator: Operator,
    context: OperatorContext | None,
    times: "PartTimes | None",
    watch: ColumnWatch | None,
) -> Callable[..., Any]:
    from dagster_dataops.operators.chains import batch_chain, chain_calls  # only for chains

    spec, calls = operator.__dataops__.spec, []
    for number, (name, part) in enumerate(spec.parts):
        use = part.__dataops__.spec
        forward = record_function(part, context)
        forward = forward if watch is None else watch.part(number, forward)
        calls.append(chain_calls.PartCall(name, forward, use.asynchronous, bool(use.batch)))
    times = times or chain_calls.PartTimes(len(calls))
    if spec.batch and spec.asynchronous:
        return batch_chain.async_batch_chain_function(calls, times, operator.__dataops__.keeper)
    if spec.batch:
        return batch_chain.batch_chain_function(calls, times, operator.__dataops__.keeper)
    if spec.asynchronous:
        return chain_calls.async_chain_function(calls, times, operator.__dataops__.keeper)
    return chain_calls.chain_function(calls, times, operator.__dataops__.keeper)


def plain_function(operator: Operator) -> Callable[..., Any]:
    """Return the method that processes data as it is written, with all options bound.

    Arguments and return value depend on the kind: ``forward`` takes a record, ``forward_batch`` a
    list of them, ``forward_batch_input`` the datasets, ``stream`` the input streams, ``build``
    iterators over the inputs and the folder, ``write`` the records and the place.
    """
    return _bound(operator, operator.__dataops__.spec.method)


def keep_function(operator: Operator, scratch: Path) -> Callable[[Iterator[Any]], Any]:
    """Return ``keep`` of a selection operator as a function of the sketches.

    Args:
        operator: A selection operator.
        scratch: A folder for temporary files, passed to ``keep`` if it has that parameter.
    """
    keep = _bound(operator, "keep")
    if "scratch" in inspect.signature(keep).parameters:
        return functools.partial(keep, scratch=scratch)
    return keep


def change_function(operator: Operator) -> Callable[[Record, Any], Any] | None:
    """Return ``change`` of a selection operator; ``None`` if it changes no record."""
    return _bound(operator, CHANGE) if hasattr(operator, CHANGE) else None


def _under_key_each(key: str) -> Callable[[Any, object], Any]:
    """Return a function that makes records of a list; an exception stands for a failed record."""

    def each(values: Any, _: object) -> Any:
        if not isinstance(values, list):
            return values
        return [value if isinstance(value, Exception) else {key: value} for value in values]

    return each


def _bound(operator: Operator, method: str) -> Callable[..., Any]:
    invocation = operator.__dataops__
    target = invocation.spec.target
    if isinstance(target, type):
        parameters = init_parameters(type(operator))
        named = [option.name for option in invocation.spec.options if option.name not in parameters]
        options = {name: invocation.options[name] for name in named} | dict(invocation.passed_up)
        function = getattr(operator, method)
    else:
        options = dict(invocation.options)
        function = target
    defaults = {option.name: option.default for option in invocation.spec.options}
    if not invocation.passed_up and all(
        name in defaults and value is defaults[name] for name, value in options.items()
    ):
        return function  # type: ignore[no-any-return]  # saves one call per record
    return functools.partial(function, **options)

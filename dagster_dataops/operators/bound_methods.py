"""Return the methods of an operator as functions with all options bound."""

import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from dagster_dataops.operators.chain import Chain
from dagster_dataops.operators.chain_calls import (
    PartCall,
    PartTimes,
    async_chain_function,
    chain_function,
)
from dagster_dataops.operators.named_outputs import routed, routed_async
from dagster_dataops.operators.operator import Operator, init_parameters
from dagster_dataops.operators.record_context import OperatorContext
from dagster_dataops.records import Record

SKETCH: Final = "sketch"


def record_function(
    operator: Operator, context: OperatorContext | None = None, times: PartTimes | None = None
) -> Callable[..., Any]:
    """Return ``forward`` as a function of one record; a coroutine function if it is async.

    For a selection operator it is ``sketch``; it returns the sketch under the key `SKETCH`. That of
    an operator with named outputs returns `Disposed`.

    Args:
        operator: The operator.
        context: Given to ``forward`` if that takes one.
        times: Takes the seconds of the parts of a chain.
    """
    spec = operator.__dataops__.spec
    if isinstance(operator, Chain):
        return _through_parts(operator, context, times or PartTimes(len(operator.parts)))
    if spec.kind != "selection":
        forward = plain_function(operator)
        forward = functools.partial(forward, context=context) if spec.takes_context else forward
        route = routed_async if spec.asynchronous else routed
        return route(forward, spec.outputs) if spec.outputs else forward
    sketch = _bound(operator, "sketch")
    return _async_sketches(sketch) if spec.asynchronous else _sketches(sketch)


def _through_parts(
    operator: Chain, context: OperatorContext | None, times: PartTimes
) -> Callable[..., Any]:
    calls = [
        PartCall(name, record_function(part, context), part.__dataops__.spec.asynchronous)
        for name, part in operator.parts
    ]
    made = async_chain_function if operator.__dataops__.spec.asynchronous else chain_function
    return made(calls, times)


def plain_function(operator: Operator) -> Callable[..., Any]:
    """Return ``forward`` as it is written, with all options bound."""
    return _bound(operator, "forward")


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


def dataset_function(operator: Operator) -> Callable[..., Any]:
    """Return ``forward_batch_input`` as a function of the datasets."""
    return _bound(operator, "forward_batch_input")


def build_function(operator: Operator) -> Callable[..., Any]:
    """Return ``build`` as a function of iterators over the inputs, and of the folder."""
    return _bound(operator, "build")


def stream_function(operator: Operator) -> Callable[..., Any]:
    """Return ``stream`` as a function of the input streams."""
    return _bound(operator, "stream")


def _sketches(sketch: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def sketched(record: Record) -> Any:
        return {SKETCH: sketch(record)}

    return sketched


def _async_sketches(sketch: Callable[[Record], Any]) -> Callable[[Record], Any]:
    async def sketched(record: Record) -> Any:
        return {SKETCH: await sketch(record)}

    return sketched


def _bound(operator: Operator, method: str) -> Callable[..., Any]:
    invocation = operator.__dataops__
    target = invocation.spec.target
    if isinstance(target, type):
        taken = init_parameters(type(operator))
        named = [option.name for option in invocation.spec.options if option.name not in taken]
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

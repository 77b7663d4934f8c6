"""The plain callables behind an operator: its options bound, ready for the engine's loops."""

import functools
from collections.abc import Callable
from typing import Any

from dagster_dataops.operators.operator import Operator, init_parameters
from dagster_dataops.records import Record


def record_function(operator: Operator) -> Callable[[Record], Any]:
    """Return ``forward`` as a function of one record; a coroutine function if it is async."""
    return _bound(operator, "forward")


def dataset_function(operator: Operator) -> Callable[..., Any]:
    """Return ``forward_batch_input`` as a function of its datasets."""
    return _bound(operator, "forward_batch_input")


def _bound(operator: Operator, method: str) -> Callable[..., Any]:
    invocation = operator.__dataops__
    target = invocation.spec.target
    if isinstance(target, type):
        taken = init_parameters(type(operator))
        options = {name: v for name, v in invocation.options.items() if name not in taken}
        function = getattr(operator, method)
    else:
        options = dict(invocation.options)
        function = target
    defaults = {option.name: option.default for option in invocation.spec.options}
    if all(name in defaults and value is defaults[name] for name, value in options.items()):
        return function  # type: ignore[no-any-return]  # one call less for every record
    return functools.partial(function, **options)

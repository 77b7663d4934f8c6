"""Reads a function or class into an `OperatorSpec`, refusing what can be no operator."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

from dagster_dataops.errors import OperatorDefinitionError
from dagster_dataops.operators.operator import Operator, init_parameters
from dagster_dataops.operators.settings import SETTING_NAMES, parse_settings
from dagster_dataops.operators.signature import (
    count_inputs,
    options_of,
    parameters_of,
    takes_any,
    wants_iterator,
)
from dagster_dataops.operators.spec import OperatorKind, OperatorSpec

Method = Literal["forward", "forward_batch_input"]
KINDS: dict[Method, OperatorKind] = {"forward": "record", "forward_batch_input": "dataset"}


def spec_of_function(
    function: Callable[..., Any], group: str, method: Method, settings: Mapping[str, Any]
) -> OperatorSpec:
    """Return the spec of a function operator.

    Raises:
        OperatorDefinitionError: It has no name of its own, or takes no data.
        OperatorOptionError: A setting has an impossible value.
    """
    name = checked_name(function.__name__, function)
    kind = KINDS[method]
    parameters = parameters_of(function)
    inputs = _checked_inputs(name, parameters, kind)
    return OperatorSpec(
        group=group,
        name=name,
        kind=kind,
        target=function,
        options=tuple(options_of(parameters[inputs:], SETTING_NAMES)),
        any_option=takes_any(parameters),
        settings=parse_settings(f"{group}.{name}", settings),
        inputs=inputs,
        streamed=tuple(wants_iterator(parameter) for parameter in parameters[:inputs]),
        asynchronous=_asynchronous(name, function, kind),
    )


def spec_of_class(
    cls: type, group: str, settings: Mapping[str, Any], target: type | None = None
) -> OperatorSpec:
    """Return the spec of a class operator.

    Args:
        cls: A subclass of a group.
        group: The group's name.
        settings: Execution settings given at registration; class attributes of the same
            names count as well.
        target: The class as written, if ``cls`` was derived from it.

    Raises:
        OperatorDefinitionError: It has both or neither of ``forward`` and
            ``forward_batch_input``.
    """
    name = checked_name(cls.__name__, cls)
    method = _only_method(name, cls)
    kind = KINDS[method]
    function = inspect.getattr_static(cls, method)
    unbound = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
    parameters = parameters_of(unbound)[0 if isinstance(function, staticmethod) else 1 :]
    inputs = _checked_inputs(name, parameters, kind)
    own = {key: getattr(cls, key) for key in SETTING_NAMES if hasattr(cls, key)}
    init = options_of(init_parameters(cls).values(), SETTING_NAMES)
    taken = {option.name for option in init} | SETTING_NAMES
    return OperatorSpec(
        group=group,
        name=name,
        kind=kind,
        target=target or cls,
        options=(*init, *options_of(parameters[inputs:], taken)),
        any_option=False,
        settings=parse_settings(f"{group}.{name}", {**own, **settings}),
        inputs=inputs,
        streamed=tuple(wants_iterator(parameter) for parameter in parameters[:inputs]),
        asynchronous=_asynchronous(name, unbound, kind),
    )


def checked_name(name: str, target: Any) -> str:
    """Return ``name`` if it can name an operator, its folder and its asset."""
    if not name.isidentifier() or not name.isascii():
        reason = "it has no name that a folder could carry; write it as a `def` with a plain name"
        raise OperatorDefinitionError(f"{target.__module__}.{target.__qualname__}", reason)
    if name.startswith("_") or hasattr(Operator, name):
        raise OperatorDefinitionError(name, "the name is reserved; choose another")
    return name


def _only_method(name: str, cls: type) -> Method:
    methods: list[Method] = [method for method in KINDS if callable(getattr(cls, method, None))]
    if len(methods) != 1:
        found = "both" if methods else "neither"
        reason = f"it has {found} of forward and forward_batch_input; define exactly one"
        raise OperatorDefinitionError(name, reason)
    return methods[0]


def _checked_inputs(name: str, parameters: list[inspect.Parameter], kind: OperatorKind) -> int:
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    if not parameters or parameters[0].kind not in positional:
        what = "one record (a dict)" if kind == "record" else "the records (a list of dicts)"
        raise OperatorDefinitionError(name, f"its first parameter must take {what}")
    return max(1, count_inputs(parameters, dataset=kind == "dataset"))


def _asynchronous(name: str, function: Callable[..., Any], kind: OperatorKind) -> bool:
    asynchronous = inspect.iscoroutinefunction(function)
    if asynchronous and kind == "dataset":
        raise OperatorDefinitionError(name, "a dataset operator cannot be `async def`")
    return asynchronous

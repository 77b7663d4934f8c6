"""The methods of an operator's class, and the inputs among the parameters of a method."""

import inspect
from collections.abc import Sequence
from typing import Any, Final

from dagster_dataops.errors import OperatorDefinitionError
from dagster_dataops.operators.kinds.kind import Inputs, OperatorKind
from dagster_dataops.operators.options.signature import count_inputs, parameters_of

_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def has_method(cls: type, method: str) -> bool:
    """Return whether a class has a method."""
    return callable(getattr(cls, method, None))


def method_of(cls: type, method: str) -> tuple[Any, list[inspect.Parameter]]:
    """Return the original function of a method, and its parameters without ``self``."""
    function = inspect.getattr_static(cls, method)
    unbound = function.__func__ if isinstance(function, (staticmethod, classmethod)) else function
    return unbound, parameters_of(unbound)[0 if isinstance(function, staticmethod) else 1 :]


def checked_inputs(kind: OperatorKind, name: str, parameters: list[inspect.Parameter]) -> int:
    """Return the number of parameters that are inputs; 0 for none and for any number.

    Args:
        kind: The kind of the operator.
        name: Its name, for errors.
        parameters: Those of its method, without ``self``.

    Raises:
        OperatorDefinitionError: The first parameter takes no data, or the parameters are others
            than the kind prescribes.
    """
    first = parameters[0].kind if parameters else None
    if kind.reads_source or (kind.takes_streams and first is inspect.Parameter.VAR_POSITIONAL):
        return 0
    if first not in _POSITIONAL:
        raise OperatorDefinitionError(name, f"its first parameter must take {kind.takes}")
    if kind.takes_streams:
        return sum(
            parameter.kind in _POSITIONAL and parameter.default is parameter.empty
            for parameter in parameters
        )
    if kind.path_parameter:
        return _inputs_before_path(kind, name, parameters)
    return max(1, count_inputs(parameters, dataset=kind.inputs is not Inputs.RECORDS))


def _inputs_before_path(
    kind: OperatorKind, name: str, parameters: Sequence[inspect.Parameter]
) -> int:
    names, last = [parameter.name for parameter in parameters], kind.path_parameter
    wanted = f"{kind.method} must take (self, records, {last})"
    if kind.one_input:
        fits = names == ["records", last]
    else:
        wanted += f", or several inputs before the {last}"
        fits = len(names) > 1 and names[-1] == last and all(map(_is_plain, parameters))
    if not fits:
        shown = ", ".join(map(str, parameters))
        reason = f"{wanted}; it takes (self, {shown}); options belong to __init__"
        raise OperatorDefinitionError(name, reason)
    return len(names) - 1


def _is_plain(parameter: inspect.Parameter) -> bool:
    return (
        parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.default is parameter.empty
    )


def check_selection(kind: OperatorKind, name: str, cls: type, method: str) -> None:
    """Check the parameters of the methods of a selection.

    Raises:
        OperatorDefinitionError: A method takes something else, or ``keep`` is ``async def``.
    """
    if len(method_of(cls, method)[1]) != 1:
        argument = "one record" if method == kind.method else "a list of records"
        reason = f"{method} must take {argument} and nothing else; options belong to __init__"
        raise OperatorDefinitionError(name, reason)
    function, keep = method_of(cls, "keep")
    if [parameter.name for parameter in keep[1:]] not in ([], ["scratch"]):
        reason = "keep must take the sketches, then `scratch` or nothing; options go to __init__"
        raise OperatorDefinitionError(name, reason)
    checked_inputs(kind, name, keep)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise OperatorDefinitionError(name, "keep cannot be `async def`; sketch can")
    if has_method(cls, "change") and len(method_of(cls, "change")[1]) != 2:
        reason = "change must take the record and what keep yielded; options belong to __init__"
        raise OperatorDefinitionError(name, reason)

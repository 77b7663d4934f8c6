"""Options of an operator for display: without secrets, cut, as plain JSON values."""

import inspect
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dagster_dataops.operators.definition.spec import Invocation
from dagster_dataops.operators.options.artefact_options import ArtefactReference
from dagster_dataops.operators.secrets.secret_options import redacted

_MAX_ITEMS: Final = 20
_MAX_CHARACTERS: Final = 200


def shown_options(invocation: Invocation) -> dict[str, Any]:
    """Return the options for display: without secrets, objects by their class."""
    return {name: shown_value(name, value) for name, value in invocation.options.items()}


class ChosenOption(NamedTuple):
    """An option for display.

    Attributes:
        value: Its value.
        default: The value that it has if none is given.
        required: Whether it has no default.
    """

    value: Any
    default: Any = None
    required: bool = False


def chosen_options(invocation: Invocation) -> dict[str, ChosenOption]:
    """Return the options whose value is not the default, by name."""
    known = {option.name: option for option in invocation.spec.options}
    chosen: dict[str, ChosenOption] = {}
    for name, value in shown_options(invocation).items():
        option = known.get(name)
        if option is None or option.required:
            chosen[name] = ChosenOption(value, required=True)
            continue
        option_value, default = invocation.options[name], option.default
        shown = value if default is option_value else shown_value(name, default)
        if shown != value:
            chosen[name] = ChosenOption(value, shown)
    return chosen


def shown_value(name: str, value: object) -> Any:
    """Return a value for display; objects by class, because their text may contain secrets."""
    return _cut(redacted(name, value))


def _cut(value: object) -> Any:
    if isinstance(value, (list, tuple)):
        items = [_cut(item) for item in value[:_MAX_ITEMS]]
        more = len(value) - len(items)
        return [*items, f"and {more:,} more"] if more else items
    if isinstance(value, Mapping):
        return {str(key): _cut(value[key]) for key in list(value)[:_MAX_ITEMS]}
    if isinstance(value, ArtefactReference):
        return f"artefact of node {value.node}"
    return _plain(value)


def _plain(value: object) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, (str, os.PathLike)):
        text = os.fsdecode(value) if isinstance(value, os.PathLike) else str.__str__(value)
        return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
    if inspect.isroutine(value) or isinstance(value, type):
        module = getattr(value, "__module__", None)  # methods of built-in types have none
        name = getattr(value, "__qualname__", "")  # partial objects, routines of 3.14, have none
        if name:
            return f"{module or 'builtins'}.{name}"
    return f"{type(value).__module__}.{type(value).__qualname__} object"


def hidden_in(value: Any, hide: Callable[[str], str]) -> Any:
    """Return a JSON value with each text in it, keys among them, as ``hide`` returns it."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {hide(key): hidden_in(item, hide) for key, item in value.items()}
    return [hidden_in(item, hide) for item in value] if isinstance(value, list) else value

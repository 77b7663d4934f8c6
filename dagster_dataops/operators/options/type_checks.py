"""Check whether the values of options match their annotations, with their ranges.

Written by hand because importing pydantic takes half a second.
"""

import math
import re
import typing
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Final, Literal

from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.options.annotations import UNIONS, plain_type, range_missed
from dagster_dataops.operators.options.artefact_options import referenced
from dagster_dataops.operators.options.declared_columns import type_text
from dagster_dataops.operators.options.signature import OptionSpec

_CHOICE: Final = re.compile(r"Literal\[(.*?)\]")


def check_types(
    operator: str, options: tuple[OptionSpec, ...], arguments: Mapping[str, Any]
) -> None:
    """Raise an error for options that do not match their annotations, or are outside their range.

    Args:
        operator: The operator's name, for errors.
        options: The options of the signature.
        arguments: The given options. Defaults, and options that name a node, are not checked.

    Raises:
        OperatorOptionError: An option has another type, or is outside its range.
    """
    for option in options:
        if option.name not in arguments or any(referenced(arguments[option.name])):
            continue
        value = arguments[option.name]
        if not matches_type(value, option.annotation):
            problem = f"{type(value).__name__}: {value!r}"[:100]
            reason = f"must be {_expected(option.annotation)}; got {problem}"
            raise OperatorOptionError(operator, option.name, reason)
        if words := range_missed(value, option.annotation):
            raise OperatorOptionError(operator, option.name, f"must be {words}; got {value!r}")


def _expected(annotation: Any) -> str:
    """Return a type in words, such as ``one of 'drop', 'tag'`` or ``Sequence[str] | None``."""
    text = type_text(plain_type(annotation)).replace("collections.abc.", "")
    return _CHOICE.sub(r"one of \1", text)


def matches_type(value: Any, annotation: Any) -> bool:
    """Return whether a value matches an annotation; true for unsupported annotations.

    An ``int`` is accepted as ``float``. A ``bool`` and NaN are not accepted as numbers, and neither
    a text nor a mapping as a collection of items.
    """
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return matches_type(value, inner[0])
    if origin in UNIONS:
        return any(matches_type(value, kind) for kind in inner)
    if origin is Literal:
        return any(isinstance(value, type(choice)) and value == choice for choice in inner)
    if isinstance(origin, type):
        return isinstance(value, origin) and _items_match(value, origin, inner)
    return value is None if annotation is None else _matches_class(value, annotation)


def _matches_class(value: Any, annotation: Any) -> bool:
    if annotation is int or annotation is float:
        number = isinstance(value, (int, annotation)) and not isinstance(value, bool)
        return number and not (isinstance(value, float) and math.isnan(value))
    if annotation is Any or getattr(annotation, "_is_protocol", False):
        return True
    return not isinstance(annotation, type) or isinstance(value, annotation)


def _items_match(value: Any, origin: type, inner: tuple[Any, ...]) -> bool:
    """Return whether the items of a collection match; those of iterators are not inspected."""
    if issubclass(origin, Mapping):
        key, item = inner
        return all(matches_type(k, key) and matches_type(v, item) for k, v in value.items())
    if not issubclass(origin, Iterable):
        return True
    if isinstance(value, (str, bytes, Mapping)):
        return False
    if origin is tuple and inner[1:] != (...,):
        return len(value) == len(inner) and all(map(matches_type, value, inner))
    return not isinstance(value, Collection) or all(matches_type(item, inner[0]) for item in value)

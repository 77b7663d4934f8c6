"""Check whether the values of options match their annotations.

Written by hand because importing pydantic takes half a second.
"""

import types
import typing
from collections.abc import Mapping
from typing import Any, Final, Literal, Union

from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.options.declared_columns import type_text
from dagster_dataops.operators.options.signature import OptionSpec

_UNIONS: Final = (Union, types.UnionType)


def check_types(operator: str, options: tuple[OptionSpec, ...], given: Mapping[str, Any]) -> None:
    """Raise an error for options that do not match their annotations.

    Args:
        operator: The operator's name, for errors.
        options: The options of the signature.
        given: The given options. Defaults are not checked.

    Raises:
        OperatorOptionError: An option has another type.
    """
    for option in options:
        if option.name in given and not matches_type(given[option.name], option.annotation):
            value = given[option.name]
            found = f"{type(value).__name__}: {value!r}"[:100]
            reason = f"must be {type_text(option.annotation)}; got {found}"
            raise OperatorOptionError(operator, option.name, reason)


def matches_type(value: Any, annotation: Any) -> bool:
    """Return whether a value matches an annotation; true for unsupported annotations.

    An ``int`` is accepted as ``float``. A ``bool`` is not accepted as a number.
    """
    origin = typing.get_origin(annotation)
    if origin in _UNIONS:
        return any(matches_type(value, one) for one in typing.get_args(annotation))
    if origin is Literal:
        return value in typing.get_args(annotation)
    if isinstance(origin, type):
        return isinstance(value, origin) and _items_match(
            value, origin, typing.get_args(annotation)
        )
    return value is None if annotation is None else _matches_class(value, annotation)


def _matches_class(value: Any, annotation: Any) -> bool:
    if annotation is int or annotation is float:
        return isinstance(value, (int, annotation)) and not isinstance(value, bool)
    if annotation is Any or getattr(annotation, "_is_protocol", False):
        return True
    return not isinstance(annotation, type) or isinstance(value, annotation)


def _items_match(value: Any, origin: type, inner: tuple[Any, ...]) -> bool:
    """Return whether the items of a list, set or dict match; other types are not inspected."""
    if origin in {list, set, frozenset} and len(inner) == 1:
        return all(matches_type(one, inner[0]) for one in value)
    if origin is dict and len(inner) == 2:
        pairs = value.items()
        return all(
            matches_type(key, inner[0]) and matches_type(one, inner[1]) for key, one in pairs
        )
    return True

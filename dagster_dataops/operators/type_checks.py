"""Values against annotations: whether an option is of the type that its signature says.

Small on purpose: pydantic would say it better, and takes half a second to be imported.
"""

import types
import typing
from collections.abc import Mapping
from typing import Any, Final, Literal, Union

from dagster_dataops.errors import OperatorOptionError
from dagster_dataops.operators.declared_columns import type_text
from dagster_dataops.operators.signature import OptionSpec

_UNIONS: Final = (Union, types.UnionType)


def check_types(operator: str, options: tuple[OptionSpec, ...], given: Mapping[str, Any]) -> None:
    """Refuse values that are not of the types that the signature says.

    Args:
        operator: Whose options they are, for the error.
        options: What the signature says of them.
        given: Those that were given; a default is its author's affair.

    Raises:
        OperatorOptionError: One is of another type.
    """
    for option in options:
        if option.name in given and not is_of(given[option.name], option.annotation):
            value = given[option.name]
            found = f"{type(value).__name__}: {value!r}"[:100]
            reason = f"must be {type_text(option.annotation)}; got {found}"
            raise OperatorOptionError(operator, option.name, reason)


def is_of(value: Any, annotation: Any) -> bool:
    """Whether a value is of the type of an annotation; of one that is not understood it is.

    An ``int`` is a ``float``; a ``bool`` is no number.
    """
    origin = typing.get_origin(annotation)
    if origin in _UNIONS:
        return any(is_of(value, one) for one in typing.get_args(annotation))
    if origin is Literal:
        return value in typing.get_args(annotation)
    if isinstance(origin, type):
        return isinstance(value, origin) and _holds(value, origin, typing.get_args(annotation))
    return value is None if annotation is None else _is_plainly(value, annotation)


def _is_plainly(value: Any, annotation: Any) -> bool:
    if annotation is int or annotation is float:
        return isinstance(value, (int, annotation)) and not isinstance(value, bool)
    if annotation is Any or getattr(annotation, "_is_protocol", False):
        return True
    return not isinstance(annotation, type) or isinstance(value, annotation)


def _holds(value: Any, origin: type, inner: tuple[Any, ...]) -> bool:
    """Whether a list, set or tuple of its kind holds what it should; others are not looked into."""
    if origin in {list, set, frozenset} and len(inner) == 1:
        return all(is_of(one, inner[0]) for one in value)
    if origin is dict and len(inner) == 2:
        pairs = value.items()
        return all(is_of(key, inner[0]) and is_of(one, inner[1]) for key, one in pairs)
    return True

"""Read annotations of options: their plain types, and the ranges that ``Annotated`` declares."""

import functools
import operator
import types
import typing
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Union

from dagster_dataops.errors import OperatorOptionError

if TYPE_CHECKING:
    from annotated_types import Ge, Gt, Le, Lt

UNIONS: Final = (Union, types.UnionType)
_COMPARE: Final = {"Ge": operator.ge, "Gt": operator.gt, "Le": operator.le, "Lt": operator.lt}
_WORDS: Final = {
    "Ge": "at least {0.ge}",
    "Gt": "above {0.gt}",
    "Le": "at most {0.le}",
    "Lt": "below {0.lt}",
}


def plain_type(annotation: Any) -> Any:
    """Return a type without the metadata of ``Annotated``, also of the members of a union."""
    members = typing.get_args(annotation)
    if typing.get_origin(annotation) is Annotated:
        return plain_type(members[0])
    plain = tuple(map(plain_type, members)) if typing.get_origin(annotation) in UNIONS else members
    return annotation if plain == members else functools.reduce(operator.or_, plain)


def range_missed(value: Any, annotation: Any) -> str:
    """Return the range of an annotation in words if a value is outside, else the empty text.

    Args:
        value: A value of the annotated type.
        annotation: A type; ranges in a union count for values of their type.
    """
    members = typing.get_args(annotation)
    if typing.get_origin(annotation) in UNIONS:
        missed = filter(None, (range_missed(value, member) for member in members))
        optional = ", or None" if types.NoneType in members else ""
        return next((f"{words}{optional}" for words in missed), "")
    if typing.get_origin(annotation) is not Annotated or not isinstance(value, (int, float)):
        return ""
    limits = [limit for member in members[1:] for limit in _limits(member)]
    return "" if all(_is_inside(value, limit) for limit in limits) else _in_words(limits)


def _limits(metadata: Any) -> Iterator["Ge | Gt | Le | Lt"]:
    """Yield the limits in an item of metadata, of which those of a group are yielded one by one."""
    from annotated_types import Ge, GroupedMetadata, Gt, Le, Lt

    constraints = metadata if isinstance(metadata, GroupedMetadata) else [metadata]
    yield from (
        constraint for constraint in constraints if isinstance(constraint, (Ge, Gt, Le, Lt))
    )


def _is_inside(value: Any, limit: "Ge | Gt | Le | Lt") -> bool:
    words = type(limit).__name__
    return bool(_COMPARE[words](value, getattr(limit, words.lower())))


def _in_words(limits: list[Any]) -> str:
    named = {type(limit).__name__: limit for limit in limits}
    if list(named) == ["Ge", "Le"]:
        return "between {Ge.ge} and {Le.le}".format(**named)
    return " and ".join(_WORDS[name].format(limit) for name, limit in named.items())


def check_pairs(operator_name: str, options: Mapping[str, Any]) -> None:
    """Raise an error for a minimum above its maximum, such as ``min_len`` above ``max_len``.

    Args:
        operator_name: The operator's name, for errors.
        options: The given options by name. Defaults are not compared, so that one limit can be
            given alone.

    Raises:
        OperatorOptionError: No value is between the two.
    """
    for name, least in options.items():
        other = f"max_{name.removeprefix('min_')}"
        most = options.get(other) if name.startswith("min_") else None
        if isinstance(least, (int, float)) and isinstance(most, (int, float)) and least > most:
            reason = f"must be at most {other}, which is {most}; got {least}"
            raise OperatorOptionError(operator_name, name, reason)

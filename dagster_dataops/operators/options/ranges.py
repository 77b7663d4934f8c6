"""Ranges of options, declared once: types for the signatures of operators.

    def __init__(self, *, max_ratio: Fraction | None = 0.25, n: PositiveInt = 2): ...

Options outside of their range are refused when the operator is constructed. The launchpad and the
JSON schema of an option have its limits; signatures and ``help()`` show the plain type.
"""

import functools
import operator
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, TypeAlias, Union

from annotated_types import Ge, GroupedMetadata, Gt, Interval, Le, Lt

from dagster_dataops.errors import OperatorOptionError

AtLeastZero: TypeAlias = Annotated[int, Ge(0)]
"""A count, 0 or more."""
PositiveInt: TypeAlias = Annotated[int, Ge(1)]
"""A count, 1 or more."""
AtLeastZeroFloat: TypeAlias = Annotated[float, Ge(0)]
"""A mean or a quotient, 0 or more."""
Fraction: TypeAlias = Annotated[float, Interval(ge=0, le=1)]
"""A share or a probability, 0 to 1."""
Percentile: TypeAlias = Annotated[float, Interval(ge=0, le=100)]
"""A rank among values: the percentage of them that are smaller, 0 to 100."""

UNIONS: Final = (Union, types.UnionType)


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
        missed = filter(None, (range_missed(value, one) for one in members))
        optional = ", or None" if types.NoneType in members else ""
        return next((f"{words}{optional}" for words in missed), "")
    if typing.get_origin(annotation) is not Annotated or not isinstance(value, (int, float)):
        return ""
    limits = [limit for one in members[1:] for limit in _limits(one)]
    return "" if all(_is_inside(value, one) for one in limits) else _in_words(limits)


def _limits(metadata: Any) -> Iterator[Ge | Gt | Le | Lt]:
    """Yield the limits in an item of metadata, of which those of a group are yielded one by one."""
    found = metadata if isinstance(metadata, GroupedMetadata) else [metadata]
    yield from (one for one in found if isinstance(one, (Ge, Gt, Le, Lt)))


def _is_inside(value: Any, limit: Ge | Gt | Le | Lt) -> bool:
    match limit:
        case Ge(least):
            return bool(value >= least)
        case Gt(bound):
            return bool(value > bound)
        case Le(most):
            return bool(value <= most)
        case Lt(bound):
            return bool(value < bound)


def _in_words(limits: list[Ge | Gt | Le | Lt]) -> str:
    match limits:
        case [Ge(least), Le(most)]:
            return f"between {least} and {most}"
    words = {Ge: "at least {0.ge}", Gt: "above {0.gt}", Le: "at most {0.le}", Lt: "below {0.lt}"}
    return " and ".join(words[type(limit)].format(limit) for limit in limits)


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

"""Options that several operators of the group share: ranges, checks, ranks, packages."""

import math
import sys
from typing import Annotated, Any, Final, TypeAlias

from annotated_types import Interval

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.records import Record

MOST_PERMUTATIONS: Final = 4096
Permutations: TypeAlias = Annotated[int, Interval(ge=1, le=MOST_PERMUTATIONS)]
NgramSize: TypeAlias = Annotated[int, Interval(ge=1, le=100)]
Threshold: TypeAlias = Annotated[float, Interval(ge=0.01, le=1)]
Seed: TypeAlias = Annotated[int, Interval(ge=0, le=2**64 - 1)]
_LEAST: Final = -sys.float_info.max  # JSON has no infinity


def rank_value(record: Record, keep: str, text: str) -> float:
    """Return the value by which one of similar records is kept.

    Args:
        record: The record.
        keep: ``first`` for none, ``longest`` for the length of ``text``, or the column of a number,
            of which a missing value and NaN are less than all others.
        text: The text of the record.
    """
    if keep in {"first", "longest"}:
        return len(text) if keep == "longest" else 0
    return column_rank(record, keep)


def column_rank(record: Record, key: str) -> float:
    """Return the number in a column; a missing value and NaN are less than all others."""
    value = record.get(key)
    if value is None:
        return _LEAST
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        shown = f"a {type(value).__name__}: {value!r:.60}"
        msg = f"keep={key!r} needs numbers in that column, found {shown}"
        raise TypeError(msg)
    return _LEAST if math.isnan(value) else value


def cluster_columns(**options: Any) -> list[str]:
    """Return the columns that an operator with the option ``cluster_key`` writes."""
    return [options["cluster_key"]] if options.get("cluster_key") else []


def check_range(option: str, value: float, least: float, most: float) -> None:
    """Raise `DefinitionError` for a value outside of a range."""
    if not least <= value <= most:
        msg = f"{option} must be between {least} and {most}, got {value}"
        raise DefinitionError(msg)


def need_numpy(operator: str) -> None:
    """Raise `MissingExtraError` if numpy is not installed."""
    with needs_extra(operator, "dedup"):
        import numpy  # noqa: F401

"""Asset checks declared in one line each.

>>> checks = {"node": [checks.row_count(min=1), checks.no_nulls("text"), checks.unique("id")]}

They are computed over the published file, all those of an asset in one pass, in a step after the
operator's own; where one step runs a whole pipeline, those that block are made within it. So they
can also be run alone, without the operator, as often as one likes; and one that blocks holds up
what is downstream all the same.
"""

from typing import Any

from dagster_dataops.assets.checks.declared_check import (
    DeclaredCheck,
    check_columns,
    declared,
    listed,
    named,
)
from dagster_dataops.assets.checks.inspectors import DroppedWatch, EachWatch, RowsWatch
from dagster_dataops.assets.checks.json_schema_check import json_schema
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.assets.checks.unique_check import RepeatsWatch
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.records import Record

__all__ = [
    "DeclaredCheck",
    "json_schema",
    "max_dropped",
    "no_nulls",
    "required_columns",
    "row_count",
    "unique",
]


def row_count(
    *,
    min: int | None = None,  # noqa: A002 - as one would say it
    max: int | None = None,  # noqa: A002
    name: str = "row_count",
    severity: Severity | None = None,
    blocking: bool = False,
) -> DeclaredCheck:
    """Check that there are at least ``min`` and at most ``max`` records."""
    if min is None and max is None:
        raise ConfigurationError("row_count", "no bound", "given min, max or both")
    if min is not None and max is not None and min > max:
        raise ConfigurationError("row_count", f"min={min}, max={max}", "min <= max")
    bounds = [f"at least {min:,}"] if min is not None else []
    bounds += [f"at most {max:,}"] if max is not None else []
    text = f"There are {' and '.join(bounds)} records."
    return declared(name, text, lambda: RowsWatch(min, max), severity, blocking=blocking)


def max_dropped(
    share: float,
    *,
    name: str = "max_dropped",
    severity: Severity | None = None,
    blocking: bool = False,
) -> DeclaredCheck:
    """Check that at most ``share``, in [0, 1], of the input records emitted nothing.

    Failed records do not count; those are the check ``failed_records``.
    """
    if not 0 <= share <= 1:
        raise ConfigurationError("max_dropped", share, "in [0, 1]")
    text = f"At most {100 * share:.3g} % of the input records are dropped."
    return declared(name, text, lambda: DroppedWatch(share), severity, blocking=blocking)


def required_columns(
    *columns: str, name: str = "", severity: Severity | None = None, blocking: bool = False
) -> DeclaredCheck:
    """Check that every record has ``columns``, whatever their values are, null included."""
    wanted = frozenset(check_columns("required_columns", columns))

    def problem(record: Record) -> tuple[str, Any] | None:
        if wanted <= record.keys():
            return None
        missing = ", ".join(column for column in columns if column not in record)
        return f"lacks {missing}", record

    text = f"Every record has {listed(columns)}."
    return declared(
        name or "required_columns", text, lambda: EachWatch(problem), severity, blocking=blocking
    )


def no_nulls(
    *columns: str, name: str = "", severity: Severity | None = None, blocking: bool = False
) -> DeclaredCheck:
    """Check that no record lacks any of ``columns``, or has null there."""
    check_columns("no_nulls", columns)

    def problem(record: Record) -> tuple[str, Any] | None:
        for column in columns:
            if record.get(column) is None:
                return f"{column} is {'null' if column in record else 'missing'}", record
        return None

    text = f"{listed(columns)} {'is' if len(columns) == 1 else 'are'} never null or missing."
    title = name or named("no_nulls", columns)
    return declared(title, text, lambda: EachWatch(problem), severity, blocking=blocking)


def unique(
    *columns: str, name: str = "", severity: Severity | None = None, blocking: bool = False
) -> DeclaredCheck:
    """Check that no two records agree in all of ``columns``.

    Those that lack one of them, or have null there, agree with none; see `no_nulls`. Digests of
    128 bits are compared, in at most about 100 MB of memory, beyond that on disk.
    """
    check_columns("unique", columns)
    text = f"No two records have the same {listed(columns)}."
    title = name or named("unique", columns)
    return declared(title, text, lambda: RepeatsWatch(columns), severity, blocking=blocking)

"""The check ``no_nulls``."""

from dagster_dataops.assets.checks.declared_check import (
    DeclaredCheck,
    check_columns,
    check_kind,
    columns_schema,
    declared,
    listed,
    name_of,
)
from dagster_dataops.assets.checks.inspectors import EachRecord
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.records import Record


@check_kind(columns_schema("Columns that are never null or missing.", "text"))
def no_nulls(
    *columns: str, name: str = "", severity: Severity | None = None, blocking: bool = False
) -> DeclaredCheck:
    """Check that every record has a value other than null in each of ``columns``."""
    check_columns("no_nulls", columns)

    def problem(record: Record) -> tuple[str, Record] | None:
        for column in columns:
            if record.get(column) is None:
                return f"{column} is {'null' if column in record else 'missing'}", record
        return None

    text = f"{listed(columns)} {'is' if len(columns) == 1 else 'are'} never null or missing."
    name, fault = name or name_of("no_nulls", columns), f"lack a value in {' or '.join(columns)}"
    return declared(name, text, lambda: EachRecord(fault, problem), severity, blocking=blocking)

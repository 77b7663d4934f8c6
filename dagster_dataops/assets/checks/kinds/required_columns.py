"""The check ``required_columns``."""

from dagster_dataops.assets.checks.declared_check import (
    DeclaredCheck,
    check_columns,
    check_kind,
    columns_schema,
    declared,
    listed,
)
from dagster_dataops.assets.checks.inspectors import EachRecord
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.records import Record


@check_kind(columns_schema("Columns that every record has.", "id", "text"))
def required_columns(
    *columns: str, name: str = "", severity: Severity | None = None, blocking: bool = False
) -> DeclaredCheck:
    """Check that every record has ``columns``; any value counts, null included."""
    check_columns("required_columns", columns)
    wanted = frozenset(columns)

    def problem(record: Record) -> tuple[str, Record] | None:
        if wanted <= record.keys():
            return None
        missing = ", ".join(column for column in columns if column not in record)
        return f"lacks {missing}", record

    name, text = name or "required_columns", f"Every record has {listed(columns)}."
    fault = f"lack {' or '.join(columns)}"
    return declared(name, text, lambda: EachRecord(fault, problem), severity, blocking=blocking)

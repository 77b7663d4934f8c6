"""The check ``required_columns``."""

from typing_extensions import override

from dagster_dataops.assets.checks.inspectors import EachRecord, Inspector
from dagster_dataops.assets.checks.kinds.columns_check import ColumnsCheck, columns_schema
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.records import Record


class RequiredColumns(ColumnsCheck):
    """Check that every record has ``columns``; any value counts, null included."""

    kind = "required_columns"
    yaml = columns_schema("Columns that every record has.", ["id", "text"])

    def __init__(
        self,
        *columns: str,
        name: str = "required_columns",
        severity: Severity | None = None,
        blocking: bool = False,
    ) -> None:
        text = "Every record has {columns}."
        super().__init__(columns, name, text, severity, blocking=blocking)
        self._wanted = frozenset(columns)

    @override
    def inspector(self) -> Inspector:
        return EachRecord(self._problem)

    def _problem(self, record: Record) -> tuple[str, Record] | None:
        if self._wanted <= record.keys():
            return None
        missing = ", ".join(column for column in self.columns if column not in record)
        return f"lacks {missing}", record

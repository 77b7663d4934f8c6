"""The check ``no_nulls``."""

from typing_extensions import override

from dagster_dataops.assets.checks.inspectors import EachRecord, Inspector
from dagster_dataops.assets.checks.kinds.columns_check import ColumnsCheck, columns_schema
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.records import Record


class NoNulls(ColumnsCheck):
    """Check that every record has a value other than null in each of ``columns``."""

    kind = "no_nulls"
    yaml = columns_schema("Columns that are never null or missing.", ["text"])

    def __init__(
        self,
        *columns: str,
        name: str = "",
        severity: Severity | None = None,
        blocking: bool = False,
    ) -> None:
        text = f"{{columns}} {'is' if len(columns) == 1 else 'are'} never null or missing."
        super().__init__(columns, name, text, severity, blocking=blocking)

    @override
    def inspector(self) -> Inspector:
        return EachRecord(self._problem)

    def _problem(self, record: Record) -> tuple[str, Record] | None:
        for column in self.columns:
            if record.get(column) is None:
                return f"{column} is {'null' if column in record else 'missing'}", record
        return None

"""The check ``required_columns``."""

from typing_extensions import override

from dagster_dataops.assets.checks.inspectors import EachRecord, Inspector
from dagster_dataops.assets.checks.kinds.columns_check import ColumnsCheck, columns_schema
from dagster_dataops.records import Record


class RequiredColumns(ColumnsCheck):
    """Check that every record has ``columns``; any value counts, null included."""

    kind = "required_columns"
    sentence = "Every record has {columns}."
    columns_in_name = False
    yaml = columns_schema("Columns that every record has.", "id", "text")

    @override
    def inspector(self) -> Inspector:
        return EachRecord(self._problem)

    def _problem(self, record: Record) -> tuple[str, Record] | None:
        missing = [column for column in self.columns if column not in record]
        return (f"lacks {', '.join(missing)}", record) if missing else None

"""The check ``no_nulls``."""

from typing_extensions import override

from dagster_dataops.assets.checks.inspectors import EachRecord, Inspector
from dagster_dataops.assets.checks.kinds.columns_check import ColumnsCheck, columns_schema
from dagster_dataops.records import Record


class NoNulls(ColumnsCheck):
    """Check that every record has a value other than null in each of ``columns``."""

    kind = "no_nulls"
    sentence = "{columns} {are} never null or missing."
    yaml = columns_schema("Columns that are never null or missing.", "text")

    @override
    def inspector(self) -> Inspector:
        return EachRecord(self._problem)

    def _problem(self, record: Record) -> tuple[str, Record] | None:
        for column in self.columns:
            if record.get(column) is None:
                return f"{column} is {'null' if column in record else 'missing'}", record
        return None

"""ExportRunner: write all records in a format to a path; the result lists the files.

The draft of the export is complete before that of the result. It replaces the earlier export when
both are on disk, and then the result is published.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dagster_dataops.checkpoints.publish.drafts import Drafts
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.exporters.delivery import Delivery
from dagster_dataops.datasets.exporters.exporter import ExportRecords, Place
from dagster_dataops.datasets.lines import iterate_lines, opened_content
from dagster_dataops.execution.node_attempt import NodeAttempt
from dagster_dataops.execution.runners.dataset_runner import DatasetRunner
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.bound_methods import plain_function
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.declared_columns import columns_text
from dagster_dataops.records import Record, decode


class ExportRunner(DatasetRunner):
    """Runs export operators."""

    def __init__(self, operator: Operator, inputs: Sequence[JsonlDataset]) -> None:
        super().__init__(operator, inputs)
        self._writer = _Writer(operator)

    @override
    def complete(self, attempt: NodeAttempt) -> bool:
        """Return whether the export is at its target and unchanged; a preview has none."""
        if attempt.operator.__dataops__.output is None:
            return True
        return self._delivery(attempt).current() is not None

    @override
    def run(self, attempt: NodeAttempt) -> Drafts:
        """Write the export, unless it is current, and put it in place; a preview does not.

        Raises:
            ExportError: The format cannot hold a record.
            DatasetOperatorError: The operator failed.
            RecordError: An input line is no record and failures are not ignored.
            OutageError: No input line is a record.
            StorageError: The target cannot be written.
        """
        with self._delivery(attempt) as delivery:
            self._current = delivery.current()
            self._rows = attempt.inputs[0].rows or 0
            self._write = delivery.write
            drafts = super().run(attempt)
            if self._current is None and attempt.operator.__dataops__.output is not None:
                attempt.lock.check()
                delivery.place()
        return replace(drafts, dropped=0, records=drafts.records or self._rows)

    @override
    def function(self, attempt: NodeAttempt) -> Callable[..., Any]:
        """Return a function of the records that writes the export and returns its listing."""

        def listed(first: Iterator[Record]) -> list[Record]:
            records = _Records(attempt.inputs[0], attempt.operator.__dataops__.columns, first)
            if self._current is None:
                export = self._write(records)
                self._rows = export.rows
                if records.unread and attempt.operator.__dataops__.keys_read():
                    deque(records, 0)  # counts those that lack a column
                return export.files
            if attempt.inputs[0].rows is None:
                deque(records, 0)  # counts them, and finds lines that are not records
            return self._current.files

        return listed

    def _delivery(self, attempt: NodeAttempt) -> Delivery:
        folder, root = attempt.folder, attempt.context.root
        output = attempt.operator.__dataops__.output
        if output is None:
            target = folder.path / f"{folder.name}_export"
        else:
            path = output.parent if self._writer.place == "pattern" else output
            target = ((root or folder.path) / path.expanduser()).absolute()
        made_from = " ".join(map(str, self.fingerprint.to_json().values()))
        made_from += columns_text(attempt.operator.__dataops__.columns)
        return Delivery(self._writer, target, folder.receipt, made_from)


class _Writer:
    """An `Exporter` that calls an export operator."""

    def __init__(self, operator: Operator) -> None:
        self.format = str(getattr(operator, "format", operator.__dataops__.spec.name.lower()))
        self.place: Place = getattr(operator, "place", "file")
        self._operator = operator

    def write(self, records: ExportRecords, place: Path) -> None:
        """Write all records."""
        plain_function(self._operator)(records, place)


class _Records(ExportRecords):
    """The records of an input. Only the first reading reports lines that are not records."""

    def __init__(
        self, dataset: JsonlDataset, columns: Mapping[str, Any], first: Iterator[Record]
    ) -> None:
        super().__init__(dataset, columns)
        self._first: Iterator[Record] | None = first

    @override
    def reading(self) -> Iterator[Record]:
        first, self._first = self._first, None
        return self._again() if first is None else first

    @property
    def unread(self) -> bool:
        """Whether there was no reading yet; some formats read the file themselves."""
        return self._first is not None

    def _again(self) -> Iterator[Record]:
        with opened_content(self.location) as (source, interval):
            for line in iterate_lines(source, [interval]):
                try:
                    yield decode(line.text)
                except ValueError:
                    continue

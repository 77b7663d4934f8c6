"""Inspectors: each looks at one file for one check.

All inspectors of a file see its records in one pass. Each is used for one file.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dagster_dataops.assets.checks.findings import Finding, Violations, check_same
from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import iterate_lines, opened_content
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.range_source import Readable, state_of
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.records import Record, decode


@dataclass(frozen=True, slots=True)
class Inspected:
    """A file after the pass over its records.

    Attributes:
        dataset: The handle of the file.
        manifest: Its manifest, if an operator published the file and it was not edited since.
        rows: The number of its records.
        state: The state of the file that was read; ``None`` if none was.
    """

    dataset: JsonlDataset
    manifest: Manifest | None
    rows: int
    state: FileState | None = None

    def check_same(self, source: Readable) -> None:
        """Check that a file that was opened again is the one that was inspected.

        Raises:
            InputError: Another result was published meanwhile.
        """
        check_same(self.dataset.location, source, self.state)


Inspector: TypeAlias = Callable[[Inspected], Finding]
"""Returns the finding of one file, after the pass over its records; see `RecordInspector`."""


class RecordInspector(ABC):
    """An inspector that sees every record of one file."""

    @abstractmethod
    def see(self, start: int, record: Record) -> None:
        """Look at the record whose line starts at byte ``start``."""

    @abstractmethod
    def see_bad_line(self, start: int, problem: str) -> None:
        """Take note of a line that is not a record."""

    @abstractmethod
    def __call__(self, inspected: Inspected) -> Finding:
        """Return the finding; called once, after the pass over the records."""


class EachRecord(RecordInspector):
    """Looks at each record alone.

    Args:
        fault: What is wrong with a record that does not pass, as in "2 of 3 records lack text".
        problem: Returns the problem of a record and the value to show; ``None`` if it has none.
    """

    def __init__(self, fault: str, problem: Callable[[Record], tuple[str, Any] | None]) -> None:
        self._fault = fault
        self._problem = problem
        self._violations = Violations()

    @override
    def see(self, start: int, record: Record) -> None:
        problem = self._problem(record)
        if problem is not None:
            self._violations.add(start, *problem)

    @override
    def see_bad_line(self, start: int, problem: str) -> None:
        self._violations.add(start, problem, "")

    @override
    def __call__(self, inspected: Inspected) -> Finding:
        return finding_of(self._violations, inspected, self._fault)


def finding_of(violations: Violations, inspected: Inspected, fault: str) -> Finding:
    """Return the finding for ``violations``, records with a fault: passed if there are none."""
    count, rows = violations.count, inspected.rows
    return Finding(
        passed=not count,
        text=f"{f'{count:,}' if count else 'None'} of {counted(rows, 'records')} {fault}.",
        numbers={"offending_records": count, "rows": rows},
        violations=violations,
        location=inspected.dataset.location,
        state=inspected.state,
    )


def inspect(
    dataset: JsonlDataset, manifest: Manifest | None, inspectors: Sequence[Inspector]
) -> Inspected:
    """Show a file to inspectors in one pass; without a pass if none looks at records.

    Raises:
        InputError: The file cannot be read.
    """
    readers = [each for each in inspectors if isinstance(each, RecordInspector)]
    if not readers and dataset.rows is not None:
        return Inspected(dataset, manifest, dataset.rows)
    rows = 0
    with opened_content(dataset.location) as (source, interval):
        state = state_of(source)
        for line in iterate_lines(source, [interval]):
            rows += 1
            if readers:
                _show(line.start, line.text, readers)
    return Inspected(dataset, manifest, rows, state)


def _show(start: int, text: bytes, inspectors: Sequence[RecordInspector]) -> None:
    try:
        record = decode(text)
    except ValueError as error:
        for inspector in inspectors:
            inspector.see_bad_line(start, str(error))
        return
    for inspector in inspectors:
        inspector.see(start, record)

"""Watches: what looks at the records of one file as they pass by, one for each check.

All watches of a file see it in the same pass. Each is used once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from dagster_dataops.assets.checks.findings import Finding, Offences
from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import content_interval, iterate_lines
from dagster_dataops.records import Record, decode


@dataclass(frozen=True, slots=True)
class Inspected:
    """A file that was looked at.

    Attributes:
        dataset: Its handle.
        manifest: What it is, if an operator published it and nobody has edited it since.
        rows: How many records it has.
    """

    dataset: JsonlDataset
    manifest: Manifest | None
    rows: int


class Watch(ABC):
    """Says what it found in one file."""

    @abstractmethod
    def finding(self, inspected: Inspected) -> Finding:
        """Return what was found, once all records have been seen."""


class RecordsWatch(Watch):
    """Sees the records of one file first."""

    @abstractmethod
    def see(self, start: int, record: Record) -> None:
        """Look at the record whose line starts at byte ``start``."""

    @abstractmethod
    def see_bad_line(self, start: int, problem: str) -> None:
        """Take note of a line that is no record."""


class RowsWatch(Watch):
    """Whether there are at least and at most so many records; ``None`` for no bound."""

    def __init__(self, least: int | None, most: int | None) -> None:
        self._least = least
        self._most = most

    @override
    def finding(self, inspected: Inspected) -> Finding:
        rows = inspected.rows
        few = self._least is not None and rows < self._least
        many = self._most is not None and rows > self._most
        text = f"{rows:,} records"
        if few:
            text += f", fewer than {self._least:,}"
        if many:
            text += f", more than {self._most:,}"
        return Finding(passed=not (few or many), text=f"{text}.", numbers={"rows": rows})


class DroppedWatch(Watch):
    """Whether no more than a share of the input records was dropped."""

    def __init__(self, share: float) -> None:
        self._share = share

    @override
    def finding(self, inspected: Inspected) -> Finding:
        manifest = inspected.manifest
        if manifest is None:
            text = "How many records were dropped is unknown: the result was edited since."
            return Finding(passed=False, text=text)
        share = manifest.dropped / manifest.rows_in if manifest.rows_in else 0.0
        return Finding(
            passed=share <= self._share,
            text=f"{manifest.dropped:,} of {manifest.rows_in:,} records dropped.",
            numbers={"rows_dropped": manifest.dropped, "dropped_share": share},
        )


class EachWatch(RecordsWatch):
    """Whether every record is as it should be.

    Args:
        problem: Returns what is wrong with a record and the value to show; ``None`` if nothing.
    """

    def __init__(self, problem: Callable[[Record], tuple[str, Any] | None]) -> None:
        self._problem = problem
        self._offences = Offences()

    @override
    def see(self, start: int, record: Record) -> None:
        problem = self._problem(record)
        if problem is not None:
            self._offences.add(start, *problem)

    @override
    def see_bad_line(self, start: int, problem: str) -> None:
        self._offences.add(start, problem, "")

    @override
    def finding(self, inspected: Inspected) -> Finding:
        return offending(self._offences, inspected)


def offending(offences: Offences, inspected: Inspected, what: str = "offend") -> Finding:
    """Return the finding that ``offences`` in a file amount to."""
    count, rows = offences.count, inspected.rows
    return Finding(
        passed=not count,
        text=f"{count:,} of {rows:,} records {what}." if count else f"None of {rows:,} records.",
        numbers={"offending_records": count, "rows": rows},
        offences=offences,
        path=inspected.dataset.path,
    )


def inspect(
    dataset: JsonlDataset, manifest: Manifest | None, watches: Sequence[Watch]
) -> Inspected:
    """Show a file to watches, in one pass; in none if nobody needs to see its records.

    Raises:
        InputError: The file cannot be read.
    """
    readers = [watch for watch in watches if isinstance(watch, RecordsWatch)]
    if not readers and dataset.rows is not None:
        return Inspected(dataset, manifest, dataset.rows)
    rows = 0
    with dataset.path.open("rb") as file:
        for line in iterate_lines(file.fileno(), [content_interval(dataset.path)]):
            rows += 1
            if readers:
                _show(line.start, line.text, readers)
    return Inspected(dataset, manifest, rows)


def _show(start: int, text: bytes, watches: Sequence[RecordsWatch]) -> None:
    try:
        record = decode(text)
    except ValueError as error:
        for watch in watches:
            watch.see_bad_line(start, str(error))
        return
    for watch in watches:
        watch.see(start, record)

"""`Exporter`: writes records in one format. `ExportRecords`: the records that it gets."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeAlias

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import (
    Interval,
    LineCounter,
    iterate_lines,
    line_blocks,
    opened_content,
)
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import size_of
from dagster_dataops.records import Record, decode, encode

_BLOCK_BYTES = 8 << 20
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
Place: TypeAlias = Literal["file", "folder", "pattern"]
"""Kind of the path of an export: a file, a folder, or a pattern of files in a folder."""


class UnfitValueError(Exception):
    """A value of a record that the format cannot hold; `Delivery` adds the file and the line.

    Args:
        index: Of the record, from 0.
        column: Its column or path; empty for the whole record.
        found: A clause that describes its content.
        remedy: A sentence with the remedy.
    """

    def __init__(self, index: int, column: str, problem: str, remedy: str) -> None:
        super().__init__(index, column, problem, remedy)
        self.index = index
        self.column = column
        self.found = problem
        self.remedy = remedy


class ExportRecords:
    """The records of an export, in order. They can be read several times, each time whole.

    Args:
        dataset: The file with the records.
        columns: The declared types of columns.

    Attributes:
        location: Where the file with the records is.
        columns: The declared types of columns, such as ``list[float]``; of some, all or none.
        rows: The number of records, once they were read.
    """

    def __init__(self, dataset: JsonlDataset, columns: Mapping[str, Any] = _NOTHING) -> None:
        self.location = dataset.location
        self.columns = columns
        self.rows = dataset.rows or 0
        self._dataset = dataset

    @property
    def path(self) -> Path:
        """The file with the records.

        Raises:
            InputError: It is an object on a store.
        """
        return self._dataset.path

    def __iter__(self) -> Iterator[Record]:
        """Yield the records, and count them."""
        self.rows = 0
        for record in self.reading():
            self.rows += 1
            yield record

    def reading(self) -> Iterator[Record]:
        """Return the records of a reading.

        Raises:
            InputError: A line is not a record.
        """
        return iter(self._dataset)

    def sample(self, count: int) -> list[Record]:
        """Return the records of the first ``count`` lines, besides the readings."""
        return self._dataset.sample(count)

    def place_of(self, index: int) -> tuple[Location, int]:
        """Return the file and the line of a record, from 1; only lines of records count."""
        with opened_content(self.location) as (source, interval):
            counter = LineCounter(source)
            remaining = index
            for line in iterate_lines(source, [interval]):
                try:
                    decode(line.text)
                except ValueError:
                    continue
                if not remaining:
                    return self.location, counter.line_at(line.start)
                remaining -= 1
        msg = f"{self.location} has no record {index}"
        raise IndexError(msg)

    def lines(self) -> Iterator[bytes]:
        """Yield the records as JSON lines; one or several whole lines at a time."""
        if not self._dataset.canonical:
            yield from map(encode, self)
            return
        with opened(self.location) as source:
            for _, block in line_blocks(source, Interval(0, size_of(source)), _BLOCK_BYTES):
                yield block


class Exporter(Protocol):
    """Writes records in one format.

    Attributes:
        format: The name of the format, such as ``parquet``.
        place: The kind of its path.
    """

    format: str
    place: Place

    def write(self, records: ExportRecords, place: Path) -> None:
        """Write all records.

        Args:
            records: The records.
            place: The file to create, or an empty folder. Other programs do not see it before it
                is complete.

        Raises:
            UnfitValueError: The format cannot hold a record.
        """
        ...

"""Read Parquet and Arrow files group by group."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from dagster_dataops.errors import DamagedFileError, DataOpsError, StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.readers.arrow.arrow_columns import RecordColumns
from dagster_dataops.readers.row_groups import GroupCursor, RowChunk
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.files.contents import ContentFile
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.streams.files.remote import file_system, is_url, source_error

_ROWS: Final = 1024  # converted to records at once
_BUFFER_BYTES: Final = 1 << 20  # per column of a Parquet file
_READ_BYTES: Final = 256 << 10  # of an Arrow stream, at once
_FILE_MARK: Final = b"ARROW1"  # first bytes of Arrow files; Arrow streams have none


class Group(NamedTuple):
    """A row group or record batch.

    Attributes:
        number: Its index in the file, from 0.
        rows_before: Returns the number of rows before it, for messages.
    """

    number: int
    rows_before: Callable[[], int]


class TableCursor(GroupCursor):
    """Read rows of a table, group by group."""

    def __init__(self, stage: Any, location: Location, counter: FailureCounter) -> None:
        wanted, folders = stage.columns, location.partition
        if wanted is not None and folders:
            folders = {name: folders[name] for name in wanted if name in folders}
            location = replace(location, partition=folders)
        super().__init__(stage, location, counter)

    def columns(self, schema: pa.Schema) -> RecordColumns:
        """Return the columns of the file that records hold; those of its folders come later."""
        wanted, folders = self.stage.columns, self.location.partition
        if wanted is not None:
            wanted = [name for name in wanted if name not in folders or name in schema.names]
        return RecordColumns(self.location.path, schema, wanted, self.stage.missing)

    @override
    def located(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        wanted, file_key = self.stage.columns, self.stage.file_key
        placed = super().located(records)
        if wanted is None or not self.location.partition:
            return placed
        names = [*wanted, file_key] if file_key else wanted  # in the order that was asked for
        return [{name: record[name] for name in names} for record in placed]

    def group_chunks(
        self, columns: RecordColumns, batches: Iterator[Any], group: Group, row: int
    ) -> Iterator[RowChunk]:
        """Yield the records of one group, starting at a row; handle the bad ones."""
        at = 0
        for batch in batches:
            end = at + batch.num_rows
            if end > row:
                first = max(at, row)
                rows = batch.slice(first - at)
                for start, records in columns.good_rows(
                    rows, partial(self._place, group, first), self.counter.handle
                ):
                    yield RowChunk(group.number, first + start, records)
            at = end

    def _place(self, group: Group, first: int, at: int) -> str:
        return f"{self.location.path}, row {group.rows_before() + first + at + 1}"


class ParquetCursor(TableCursor):
    """Read row groups, in batches of rows."""

    @override
    def chunks(self, group: int, row: int) -> Iterator[RowChunk]:
        path = self.location.path
        with naming_file(path, "Parquet"), _seekable(self.location) as source:
            options = {"buffer_size": _BUFFER_BYTES, "pre_buffer": False}
            with pyarrow.parquet.ParquetFile(source, **options) as file:
                columns = self.columns(file.schema_arrow)
                for number in range(group, file.num_row_groups):
                    yield from self._row_group(file, columns, number, row)
                    row = 0

    def _row_group(
        self, file: Any, columns: RecordColumns, number: int, row: int
    ) -> Iterator[RowChunk]:
        """Yield the records of a row group; the rest of a damaged one is one failed item."""
        place = f"{self.location.path}, row group {number + 1} of {file.num_row_groups}"

        def rows_before() -> int:
            return sum(file.metadata.row_group(group).num_rows for group in range(number))

        try:
            with naming_file(place, "Parquet"):
                names = list(columns.names)
                batches = file.iter_batches(_ROWS, [number], names, use_threads=False)
                yield from self.group_chunks(columns, batches, Group(number, rows_before), row)
        except DamagedFileError as error:
            self.counter.handle(place, error)


class ArrowCursor(TableCursor):
    """Read record batches."""

    @override
    def chunks(self, group: int, row: int) -> Iterator[RowChunk]:
        with naming_file(self.location.path, "Arrow"):
            with self.location.opened() as content:
                is_file = content.read_at(len(_FILE_MARK), 0) == _FILE_MARK
            reading = self._of_file if is_file else self._of_stream
            for source_columns, batch in reading(group):
                columns = self.columns(batch.schema)
                slices = (batch.slice(at, _ROWS) for at in range(0, batch.num_rows, _ROWS))
                yield from self.group_chunks(columns, slices, source_columns, row)
                row = 0

    def _of_file(self, group: int) -> Iterator[tuple[Group, Any]]:
        with _seekable(self.location) as source, pyarrow.ipc.open_file(source) as file:
            for number in range(group, file.num_record_batches):
                place = f"{self.location.path}, batch {number + 1} of {file.num_record_batches}"
                try:
                    with naming_file(place, "Arrow"):
                        batch = file.get_batch(number)
                except DamagedFileError as error:
                    self.counter.handle(place, error)
                else:
                    yield Group(number, partial(_rows_in, file, number)), batch

    def _of_stream(self, group: int) -> Iterator[tuple[Group, Any]]:
        before = 0
        with _content_file(self.location) as source, pyarrow.ipc.open_stream(source) as stream:
            for number, batch in enumerate(stream):
                if number >= group:
                    yield Group(number, partial(int, before)), batch
                before += batch.num_rows


@dataclass(eq=False)
class TableStage(FileStage):
    """Yield the rows of tables."""

    added_later: ClassVar[frozenset[str]] = frozenset({"missing"})
    columns: tuple[str, ...] | None
    file_key: str | None
    missing: tuple[str, ...]


@dataclass(eq=False)
class ParquetFiles(TableStage):
    """Yield the rows of Parquet files."""

    name: ClassVar[str] = "read_parquet"
    file_cursor: ClassVar[type[FileCursor]] = ParquetCursor


@dataclass(eq=False)
class ArrowFiles(TableStage):
    """Yield the rows of files and streams in Arrow's IPC format."""

    name: ClassVar[str] = "read_arrow"
    file_cursor: ClassVar[type[FileCursor]] = ArrowCursor


def _rows_in(file: Any, batches: int) -> int:
    """Return the number of rows in the first batches of an Arrow file."""
    return sum(file.get_batch(batch).num_rows for batch in range(batches))


@contextmanager
def _content_file(location: Location) -> Iterator[Any]:
    """Open a file to read its decompressed bytes from the start."""
    with location.opened() as content:
        file = io.BufferedReader(ContentFile(content), _READ_BYTES)
        with file:
            yield file


@contextmanager
def _seekable(location: Location) -> Iterator[Any]:
    """Open a file for random access, as a path or as a Python file."""
    if location.compression is not None:
        reason = "is read at several positions, so it cannot be compressed; decompress it first"
        raise StreamSourceError(location.path, reason)
    if not is_url(location.path):
        location.size()  # raises an error if the file is missing
        yield location.path
        return
    system, path = file_system(location.path, location.storage_options)
    try:
        file = system.open(path, "rb")
    except Exception as error:
        raise source_error(location.path, error) from error
    with file:
        yield file


@contextmanager
def naming_file(path: str, kind: str) -> Iterator[None]:
    """Convert errors of pyarrow and fsspec to errors that name the file.

    Raises:
        StreamSourceError: The block raised an error.
    """
    try:
        yield
    except DataOpsError:  # names its place, or ends the stream
        raise
    except OSError as error:
        if error.errno is not None:  # of the system, not of the format
            raise source_error(path, error) from error
        raise DamagedFileError(path, f"is not a valid {kind} file: {error}") from error
    except (pa.ArrowException, ValueError) as error:
        raise DamagedFileError(path, f"is not a valid {kind} file: {error}") from error
    except Exception as error:
        if is_url(path) and not isinstance(error, SystemError):
            raise source_error(path, error) from error
        # pyarrow raises various errors for damaged files
        reason = f"is not a valid {kind} file: {type(error).__name__}: {error}"
        raise DamagedFileError(path, reason) from error

"""Read Parquet and Arrow files group by group."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.readers.arrow.arrow_columns import RecordColumns
from dagster_dataops.readers.row_groups import GroupCursor, RowChunk
from dagster_dataops.streams.files.contents import ContentFile
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.streams.files.remote import file_system, is_url, source_error

_ROWS: Final = 1024  # converted to records at once
_BUFFER_BYTES: Final = 1 << 20  # per column of a Parquet file
_READ_BYTES: Final = 256 << 10  # of an Arrow stream, at once
_FILE_MARK: Final = b"ARROW1"  # first bytes of Arrow files; Arrow streams have none


class ParquetCursor(GroupCursor):
    """Read row groups, in batches of rows."""

    @override
    def chunks(self, group: int, row: int) -> Iterator[RowChunk]:
        path = self.location.path
        with naming_file(path, "Parquet"), _seekable(self.location) as source:
            options = {"buffer_size": _BUFFER_BYTES, "pre_buffer": False}
            with pyarrow.parquet.ParquetFile(source, **options) as file:
                columns = RecordColumns(path, file.schema_arrow, self.stage.columns)
                for number in range(group, file.num_row_groups):
                    names = list(columns.names)
                    batches = file.iter_batches(_ROWS, [number], names, use_threads=False)
                    yield from _chunks(columns, batches, number, row)
                    row = 0


class ArrowCursor(GroupCursor):
    """Read record batches."""

    @override
    def chunks(self, group: int, row: int) -> Iterator[RowChunk]:
        path = self.location.path
        with naming_file(path, "Arrow"):
            with self.location.opened() as content:
                is_file = content.read_at(len(_FILE_MARK), 0) == _FILE_MARK
            reading = self._of_file if is_file else self._of_stream
            for number, batch in reading(group):
                columns = RecordColumns(path, batch.schema, self.stage.columns)
                slices = (batch.slice(at, _ROWS) for at in range(0, batch.num_rows, _ROWS))
                yield from _chunks(columns, slices, number, row)
                row = 0

    def _of_file(self, group: int) -> Iterator[tuple[int, Any]]:
        with _seekable(self.location) as source, pyarrow.ipc.open_file(source) as file:
            for number in range(group, file.num_record_batches):
                yield number, file.get_batch(number)

    def _of_stream(self, group: int) -> Iterator[tuple[int, Any]]:
        with _content_file(self.location) as source, pyarrow.ipc.open_stream(source) as stream:
            for number, batch in enumerate(stream):
                if number >= group:
                    yield number, batch


@dataclass(eq=False)
class ParquetFiles(FileStage):
    """Yield the rows of Parquet files."""

    name: ClassVar[str] = "read_parquet"
    file_cursor: ClassVar[type[FileCursor]] = ParquetCursor
    columns: tuple[str, ...] | None
    file_key: str | None


@dataclass(eq=False)
class ArrowFiles(FileStage):
    """Yield the rows of files and streams in Arrow's IPC format."""

    name: ClassVar[str] = "read_arrow"
    file_cursor: ClassVar[type[FileCursor]] = ArrowCursor
    columns: tuple[str, ...] | None
    file_key: str | None


def _chunks(
    columns: RecordColumns, batches: Iterator[Any], number: int, row: int
) -> Iterator[RowChunk]:
    """Yield the records of one group, starting at a row."""
    at = 0
    for batch in batches:
        end = at + batch.num_rows
        if end > row:
            first = max(at, row)
            yield RowChunk(number, first, columns.records(batch.slice(first - at)))
        at = end


@contextmanager
def _content_file(location: Location) -> Iterator[Any]:
    """Open a file to read its decompressed bytes from the start."""
    with location.opened() as content:
        file = io.BufferedReader(ContentFile(content), _READ_BYTES)
        with file:
            yield file


@contextmanager
def _seekable(location: Location) -> Iterator[Any]:
    """Open a file for random access, as a path or as a Python file.

    Raises:
        StreamSourceError: The file is compressed or cannot be opened.
    """
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
    except StreamSourceError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StreamSourceError(path, f"is not a valid {kind} file: {error}") from error
    except Exception as error:  # raised for files by URL
        raise source_error(path, error) from error

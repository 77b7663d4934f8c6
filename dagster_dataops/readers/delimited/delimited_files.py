"""``read_delimited``: read the rows of CSV and TSV files as records."""

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from dagster_dataops.errors import (
    DamagedFileError,
    StreamArgumentError,
    StreamDefinitionError,
    StreamSourceError,
)
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.readers.delimited.cells import CellType, Convert, convert, type_names
from dagster_dataops.readers.delimited.csv_rows import CsvDialect, Rows, split, unclosed_row_error
from dagster_dataops.streams.core.arguments import texts
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.factories import block_bytes
from dagster_dataops.streams.files.blocks import BlockCursor, ParsedBlock, Terminator
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import FileCursor, FileStage, Origin
from dagster_dataops.streams.files.locations import Location
from dagster_dataops.streams.files.text_lines import known_encoding, split_mark

_HEAD_BYTES: Final = 64 << 10
_MAX_SHOWN_COLUMNS: Final = 12  # columns listed in messages


class RowCursor(BlockCursor):
    """Read rows. Blocks end at the end of a row, so a position is never inside a row."""

    numbered = True  # counting again would have to parse quotes

    def __init__(self, stage: Any, location: Location, counter: FailureCounter) -> None:
        super().__init__(stage, location, counter)
        self._encoding = stage.encoding
        self._rows = Rows([], [], 0, "", is_open=False)
        self._block_lines = 0  # the number of lines of the last block
        self._is_text = True
        self._columns: tuple[str, ...] = ()
        self._conversions: list[tuple[str, Convert]] = []

    @override
    def begin(self, content: Content) -> int:
        head = content.read_at(_HEAD_BYTES, 0)
        self._encoding, mark = split_mark(self.stage.encoding, head)
        newline, old = "\n".encode(self._encoding), "\r".encode(self._encoding)
        ended = newline if newline in head or old not in head else old
        self.terminator = Terminator(ended, len(ended))
        begin, names = len(mark), self.stage.names
        if self.stage.header:
            length, header = self._header(content, begin)
            begin, names = begin + length, names or header
        self._columns = names or ()
        self._check_columns()
        self._conversions = self.stage.conversions(self.path, self._columns)
        return begin

    def _header(self, content: Content, begin: int) -> tuple[int, tuple[str, ...]]:
        """Return the size in bytes of the lines up to the header, and the column names."""
        block = self.read_rows(content, begin, _HEAD_BYTES)
        rows = self._rows
        ends = [*rows.before[1:], rows.lines]
        for cells, before, end in zip(rows.cells, rows.before, ends, strict=False):
            if isinstance(cells, csv.Error):
                raise self._refused(before, cells)
            if cells and not (self._is_text or _is_text(cells)):
                place = f"{self.path}, line {before + 1}"
                raise DamagedFileError(place, f"is not {self.stage.encoding} text")
            if cells:
                self._block_lines = end
                return self._byte_length(block, rows.first(end)), tuple(cells)
        self._block_lines = self._rows.lines
        return len(block), ()

    def _check_columns(self) -> None:
        twice = repeated(self._columns)
        if twice is not None:
            reason = f"has two columns {twice!r}; names=[...] with header=True renames them"
            raise StreamSourceError(self.path, reason)

    @override
    def read_block(self, content: Content, start: int) -> bytes:
        return self.read_rows(content, start, self.stage.block_size)

    def read_rows(self, content: Content, start: int, size: int) -> bytes:
        """Return the bytes of whole rows: at most ``size`` bytes, unless the first row is longer.

        Raises:
            StreamSourceError: The file cannot be read at ``start``, or ends inside a row.
        """
        while True:
            block, is_end = self.whole_lines(content, start, size)
            self._rows = split(self._decode(block), self.stage.dialect)
            self._block_lines = self._rows.lines
            if not self._rows.is_open:
                return block
            if self._rows.lines:
                return block[: self._byte_length(block, self._rows.text)]
            if is_end:
                raise unclosed_row_error(self.path, self.lines_before + 1)
            if content.failure is not None:
                raise content.failure
            size = self.larger(size, start)

    def _decode(self, block: bytes) -> str:
        self._is_text = True
        try:
            return block.decode(self._encoding)
        except UnicodeDecodeError as error:
            self._is_text = False  # invalid text is kept and refused row by row
            try:
                return block.decode(self._encoding, "surrogateescape")
            except UnicodeDecodeError:
                reason = f"is not {self.stage.encoding} text: {error}"
                raise DamagedFileError(self.path, reason) from error

    def _byte_length(self, block: bytes, text: str) -> int:
        """Return the number of bytes of ``text`` at the start of a block."""
        length = len(text.encode(self._encoding, "surrogateescape"))
        if block[:length].decode(self._encoding, "surrogateescape") != text:
            reason = f"rows with line breaks cannot be read in {self.stage.encoding}"
            raise StreamSourceError(self.path, reason)
        return length

    @override
    def lines_in(self, block: bytes) -> int:
        return self._block_lines  # ``block`` is always the last block read

    @override
    def parse(self, block: bytes, start: int) -> ParsedBlock:
        rows, lines = self._rows.cells, self._rows.before
        if not all(rows):
            lines = [line for line, cells in zip(lines, rows, strict=True) if cells]
            rows = [cells for cells in rows if cells]
        whole = cast("list[list[str]]", rows)
        is_valid = self._is_text and set(map(type, rows)) <= {list}
        if not is_valid or not set(map(len, whole)) <= {len(self._columns)}:
            return self.parse_each(zip(lines, rows, strict=True), self._record)
        columns = self._columns
        records: list[Any] = [dict(zip(columns, row, strict=False)) for row in whole]
        try:
            for name, conversion in self._conversions:
                for record in records:
                    record[name] = conversion(record[name])
        except ValueError:
            return self.parse_each(zip(lines, rows, strict=True), self._record)
        return ParsedBlock(records, None, lines)

    def _record(self, line: int, cells: list[str] | csv.Error) -> dict[str, Any]:
        """Return the record of one row."""
        if isinstance(cells, csv.Error):
            raise self._refused(line, cells)
        if len(cells) != len(self._columns):
            raise self._refused(
                line, f"has {counted(len(cells), 'cells')}; {_columns_text(self._columns)}"
            )
        if not (self._is_text or _is_text(cells)):
            raise self._refused(line, f"is not {self.stage.encoding} text")
        record: dict[str, Any] = dict(zip(self._columns, cells, strict=True))
        for name, conversion in self._conversions:
            try:
                record[name] = conversion(record[name])
            except ValueError as error:
                raise self._refused(line, f"column {name!r}: {error}") from error
        return record

    def _refused(self, line: int, reason: object) -> StreamSourceError:
        advice = "; csv.field_size_limit() sets that limit" if "limit" in str(reason) else ""
        place = f"{self.path}, line {self.lines_before + line + 1}"
        return StreamSourceError(place, f"{reason}{advice}")


@dataclass(eq=False)
class DelimitedFiles(FileStage):
    """Yield the rows of delimited files; blank lines are skipped."""

    name: ClassVar[str] = "read_delimited"
    file_cursor: ClassVar[type[FileCursor]] = RowCursor
    dialect: CsvDialect
    header: bool
    names: tuple[str, ...] | None
    types: dict[str, str] | str
    missing: tuple[str, ...]
    encoding: str
    origin: Origin
    block_size: int

    def conversions(self, path: str, columns: Iterable[str]) -> list[tuple[str, Convert]]:
        """Return the columns that need conversion, with their conversions."""
        columns, types = tuple(columns), self.types
        if isinstance(types, str):
            types = dict.fromkeys(columns, types)
        unknown = [name for name in types if name not in columns]
        if unknown:
            reason = f"has no column {unknown[0]!r}, which types names; {_columns_text(columns)}"
            raise StreamSourceError(path, reason)
        converters = ((name, convert(types.get(name, "str"), self.missing)) for name in columns)
        return [(name, converter) for name, converter in converters if converter is not None]


def repeated(names: Sequence[str]) -> str | None:
    """Return the first name that occurs again; ``None`` if all differ."""
    return next((name for at, name in enumerate(names) if name in names[:at]), None)


def _is_text(cells: list[str]) -> bool:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True


def _columns_text(columns: tuple[str, ...]) -> str:
    shown = ", ".join(columns[:_MAX_SHOWN_COLUMNS]) + (
        ", …" if len(columns) > _MAX_SHOWN_COLUMNS else ""
    )
    return f"the file has {counted(len(columns), 'columns')}: {shown}"


_NAME = "read_delimited"


def read_delimited(  # noqa: PLR0913 - the options of the format
    path: GivenPaths,
    *,
    delimiter: str = ",",
    quotechar: str | None = '"',
    doublequote: bool = True,
    escapechar: str | None = None,
    skipinitialspace: bool = False,
    header: bool | None = None,
    names: SequenceOf[str] | None = None,
    types: Mapping[str, CellType] | CellType | None = None,
    missing: Collection[str] = (),
    encoding: str | None = None,
    file_key: str | None = None,
    line_key: str | None = None,
    block_size: int | None = None,
    hive: bool = True,
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    r"""Read the rows of delimited files, by the rules of Python's csv module.

    Quoted cells may contain delimiters and line breaks. Blank lines are skipped. A row with the
    wrong number of cells, or with a cell that does not match its type, is an error with file and
    line; the stream's ``on_error`` can skip or quarantine such rows. A file that ends inside quotes
    is an error.

    Args:
        path: A file, a list of files, a folder or a pattern; see `read_jsonl`.
        delimiter: The character between cells; ``"\t"`` for TSV files.
        quotechar: The character that encloses quoted cells; ``None`` for none.
        doublequote: Whether a quote inside quotes is written twice.
        escapechar: The character that escapes the next one.
        skipinitialspace: Whether to skip spaces after a delimiter.
        header: Whether the first row of each file holds the column names; true by default
            unless ``names`` is given. With both, that row is skipped.
        names: The column names, in order.
        types: Types by column name, or one for all columns: ``int``, ``float``, ``bool`` (true,
            yes, 1, false, no, 0, in any case), ``str``, ``"json"``. Other columns are texts. Empty
            cells become ``None`` unless they are texts.
        missing: Cells that become ``None`` in all columns, such as ``["NA", "null"]``.
        encoding: The encoding; if ``None``, UTF-8 with or without a byte order mark.
        file_key: The key under which each record holds its file path; ``None`` for no such key.
        line_key: The key under which each record holds the number of its first line, counted
            from 1; ``None`` for no such key.
        block_size: The number of bytes to read at once, at least 1024.
        hive: See `read_jsonl`.
        compression: See `read_jsonl`.
        storage_options: See `read_jsonl`.

    Raises:
        StreamArgumentError: An argument has a wrong type.
        StreamDefinitionError: The arguments contradict each other.
    """
    has_header = names is None if header is None else header
    if names is None and not has_header:
        raise StreamDefinitionError(_NAME, "header=False needs names for the columns")
    stage = DelimitedFiles(
        FileSet.of(_NAME, path, compression, storage_options, hive=hive),
        _dialect(CsvDialect(delimiter, quotechar, doublequote, escapechar, skipinitialspace)),
        has_header,
        _names(names),
        type_names(types),
        tuple(sorted(missing)),
        known_encoding(encoding or "utf-8-sig", _NAME),
        Origin(file_key, line_key),
        block_bytes(_NAME, block_size),
    )
    return DataPipelineBuilder(stage)


def _dialect(dialect: CsvDialect) -> CsvDialect:
    try:
        dialect.reader(iter(()))
    except (TypeError, ValueError) as error:
        raise StreamArgumentError(_NAME, str(error)) from error
    return dialect


def _names(names: SequenceOf[str] | None) -> tuple[str, ...] | None:
    checked = texts(_NAME, "names", names)
    twice = repeated(checked or ())
    if twice is not None:
        raise StreamDefinitionError(_NAME, f"names contains {twice!r} twice")
    return checked

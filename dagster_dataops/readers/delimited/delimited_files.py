"""``read_delimited``: read the rows of CSV and TSV files as records."""

from collections.abc import Collection, Mapping
from collections.abc import Sequence as SequenceOf
from typing import Any

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.readers.delimited.cells import CellType, type_names
from dagster_dataops.readers.delimited.csv_rows import CsvDialect
from dagster_dataops.readers.delimited.delimited_rows import DelimitedFiles, repeated
from dagster_dataops.streams.core.arguments import texts
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.factories import block_bytes
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import Origin
from dagster_dataops.streams.files.text_lines import known_encoding

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

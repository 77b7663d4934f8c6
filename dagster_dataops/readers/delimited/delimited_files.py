"""``read_delimited``: the rows of CSV and TSV files as records."""

from collections.abc import Collection, Mapping
from collections.abc import Sequence as SequenceOf
from typing import Any

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.readers.delimited.cells import CellType, type_names
from dagster_dataops.readers.delimited.csv_rows import Dialect
from dagster_dataops.readers.delimited.delimited_rows import Delimited
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.factories import block_bytes
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import Origin
from dagster_dataops.streams.files.text_lines import known_encoding

_NAME = "read_delimited"


def read_delimited(  # noqa: PLR0913 - what may be said of delimited files
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
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    r"""Read the rows of delimited files, by the rules of Python's csv module.

    Cells in quotes may hold delimiters and line ends. Blank lines are passed over. A row with more
    or fewer cells than there are columns, or with a cell that is not of its type, is an error that
    names file and line; ``on_error`` of the stream may skip such rows or keep them apart. A file
    that ends inside quotes is an error.

    Args:
        path: A file, a list of files, a folder or wildcards; see `read_jsonl`.
        delimiter: What stands between cells; ``"\t"`` in TSV files.
        quotechar: What encloses cells; ``None`` where nothing does.
        doublequote: Whether a quote inside quotes is written twice.
        escapechar: What takes its meaning from the character behind it.
        skipinitialspace: Whether spaces behind a delimiter are passed over.
        header: Whether the first row of every file names the columns; it does if ``names`` is
            not given. With ``names``, that row is passed over.
        names: Of the columns, in their order.
        types: Of columns by name, or one for all: ``int``, ``float``, ``bool`` (true, yes, 1,
            false, no, 0, in any case), ``str``, ``"json"``. Columns without one are texts. Empty
            cells are ``None`` unless they are texts.
        missing: Cells that are ``None``, such as ``["NA", "null"]``, in columns of every type.
        encoding: UTF-8 if ``None``, with or without a byte order mark.
        file_key: With it, the key of a record's file.
        line_key: With it, the key of the line at which its row begins, counted from 1.
        block_size: How many bytes to read at once, at least 1024.
        compression: See `read_jsonl`.
        storage_options: See `read_jsonl`.

    Raises:
        StreamDefinitionError: Arguments with which nothing can be read.
    """
    has_header = names is None if header is None else header
    if names is None and not has_header:
        raise StreamDefinitionError(_NAME, "header=False needs names for the columns")
    stage = Delimited(
        FileSet.of(_NAME, path, compression, storage_options),
        _dialect(Dialect(delimiter, quotechar, doublequote, escapechar, skipinitialspace)),
        has_header,
        _names(names),
        type_names(types),
        tuple(sorted(missing)),
        known_encoding(encoding or "utf-8-sig", _NAME),
        Origin(file_key, line_key),
        block_bytes(_NAME, block_size),
    )
    return DataPipelineBuilder(stage)


def _dialect(given: Dialect) -> Dialect:
    try:
        given.reader(iter(()))
    except (TypeError, ValueError) as error:
        raise StreamArgumentError(_NAME, str(error)) from error
    return given


def _names(names: SequenceOf[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise StreamArgumentError(_NAME, f"names is {names!r}; it must be a list of texts")
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise StreamDefinitionError(_NAME, f"names has {twice[0]!r} twice")
    return tuple(names)

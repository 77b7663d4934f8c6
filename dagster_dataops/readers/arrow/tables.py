"""``read_parquet`` and ``read_arrow``: the rows of tables as records."""

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING, Any

from dagster_dataops.errors import MissingExtraError, StreamArgumentError
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths

if TYPE_CHECKING:
    from types import ModuleType


def read_parquet(
    path: GivenPaths,
    columns: SequenceOf[str] | None = None,
    *,
    file_key: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read the rows of Parquet files as records; needs the extra ``arrow``.

    A row group is read a thousand rows at a time. Going on from a position, the rows before it in
    its group are passed over, and no other group is read.

    Dates, times and timestamps become ISO 8601 texts, decimals texts of their digits, bytes base64
    texts, maps objects (lists of pairs if their keys are no texts). Columns of durations and of
    unions are refused by name.

    Args:
        path: A file, a list of files, a folder or wildcards, also by URL; see `read_jsonl`. A
            server of files by HTTP has to know ranges.
        columns: Which columns, in their order; all if ``None``.
        file_key: With it, the key of a record's file.
        storage_options: See `read_jsonl`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    files = FileSet.of("read_parquet", path, None, storage_options)
    stage = _arrow("read_parquet").ParquetFiles(files, _columns("read_parquet", columns), file_key)
    return DataPipelineBuilder(stage)


def read_arrow(
    path: GivenPaths,
    columns: SequenceOf[str] | None = None,
    *,
    file_key: str | None = None,
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read the rows of Arrow files (Feather) and of files of Arrow streams; needs ``arrow``.

    Going on from a position, an Arrow file is read from its record batch on; of a stream, the
    batches before are read, and no records made of them.

    Args:
        path: A file, a list of files, a folder or wildcards, also by URL; see `read_jsonl`.
        columns: Which columns, in their order; all if ``None``. For their values see
            `read_parquet`.
        file_key: With it, the key of a record's file.
        compression: See `read_jsonl`; streams may be packed, files not.
        storage_options: See `read_jsonl`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    files = FileSet.of("read_arrow", path, compression, storage_options)
    stage = _arrow("read_arrow").ArrowFiles(files, _columns("read_arrow", columns), file_key)
    return DataPipelineBuilder(stage)


def _arrow(reader: str) -> "ModuleType":
    try:
        from dagster_dataops.readers.arrow import arrow_files
    except ImportError:
        raise MissingExtraError(reader, "arrow") from None
    return arrow_files


def _columns(reader: str, columns: SequenceOf[str] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise StreamArgumentError(reader, f"columns is {columns!r}; it must be a list of texts")
    return tuple(columns)

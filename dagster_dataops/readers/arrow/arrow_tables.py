"""``read_parquet`` and ``read_arrow``: read the rows of tables as records."""

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from typing import TYPE_CHECKING, Any

from dagster_dataops.errors import MissingExtraError
from dagster_dataops.streams.core.arguments import texts
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

    A row group is read about 1,000 rows at a time. Resuming skips the earlier rows of the current
    row group and reads no other group.

    Dates, times and timestamps become ISO 8601 texts; decimals texts of their digits; bytes base64
    texts; maps objects, or lists of pairs if their keys are not texts. Columns of durations and
    unions are refused with their names.

    Args:
        path: A file, a list of files, a folder or a pattern, also as URLs; see `read_jsonl`. An
            HTTP server must support ranges.
        columns: The columns to read, in order; all if ``None``.
        file_key: The key under which each record holds its file path; ``None`` for no such key.
        storage_options: See `read_jsonl`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    files = FileSet.of("read_parquet", path, None, storage_options)
    stage = _arrow("read_parquet").ParquetFiles(
        files, texts("read_parquet", "columns", columns), file_key
    )
    return DataPipelineBuilder(stage)


def read_arrow(
    path: GivenPaths,
    columns: SequenceOf[str] | None = None,
    *,
    file_key: str | None = None,
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read the rows of Arrow files (Feather) and of files with Arrow streams; needs ``arrow``.

    Resuming reads an Arrow file from the current record batch on. Of an Arrow stream, the earlier
    batches are read again but not converted.

    Args:
        path: A file, a list of files, a folder or a pattern, also as URLs; see `read_jsonl`.
        columns: The columns to read, in order; all if ``None``. For their values see
            `read_parquet`.
        file_key: The key under which each record holds its file path; ``None`` for no such key.
        compression: See `read_jsonl`. Streams may be compressed, files may not.
        storage_options: See `read_jsonl`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    files = FileSet.of("read_arrow", path, compression, storage_options)
    stage = _arrow("read_arrow").ArrowFiles(
        files, texts("read_arrow", "columns", columns), file_key
    )
    return DataPipelineBuilder(stage)


def _arrow(reader: str) -> "ModuleType":
    try:
        from dagster_dataops.readers.arrow import arrow_files
    except ImportError:
        raise MissingExtraError(reader, "arrow") from None
    return arrow_files

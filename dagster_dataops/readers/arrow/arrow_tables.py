"""``read_parquet`` and ``read_arrow``: read the rows of tables as records."""

from collections.abc import Collection, Mapping
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
    missing: Collection[str] = (),
    hive: bool = True,
    file_key: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read the rows of Parquet files as records; needs the extra ``arrow``.

    A row group is read about 1,000 rows at a time. Resuming skips the earlier rows of the current
    row group and reads no other group.

    Dates, times and timestamps become ISO 8601 texts; decimals texts of their digits; bytes base64
    texts; maps objects, or lists of pairs if their keys are not texts. Columns of Arrow's JSON type
    are texts. Columns of durations and unions are refused with their names. A row that Python or
    JSON cannot hold is a failed item, and so is the rest of a damaged row group; both are named.

    Args:
        path: A file, a list of files, a folder or a pattern, also as URLs; see `read_jsonl`. An
            HTTP server must support ranges.
        columns: The columns to read, in order; all if ``None``. Columns of folders come last.
        missing: Texts that become ``None`` in columns of texts, such as ``["NA"]``. ``"nan"``,
            ``"inf"`` and ``"-inf"``, in any case, stand for these numbers, too; without them, a row
            that holds one is a failed item, because JSON has no such numbers.
        hive: See `read_jsonl`.
        file_key: The key under which each record holds its file path; ``None`` for no such key.
        storage_options: See `read_jsonl`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    files = FileSet.of("read_parquet", path, None, storage_options, hive=hive)
    chosen = texts("read_parquet", "columns", columns)
    stage = _arrow("read_parquet").ParquetFiles(
        files, chosen, file_key, _missing("read_parquet", missing)
    )
    return DataPipelineBuilder(stage)


def read_arrow(  # noqa: PLR0913 - the options of files
    path: GivenPaths,
    columns: SequenceOf[str] | None = None,
    *,
    missing: Collection[str] = (),
    hive: bool = True,
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
        missing: See `read_parquet`.
        hive: See `read_jsonl`.
        file_key: The key under which each record holds its file path; ``None`` for no such key.
        compression: See `read_jsonl`. Streams may be compressed, files may not.
        storage_options: See `read_jsonl`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    files = FileSet.of("read_arrow", path, compression, storage_options, hive=hive)
    chosen = texts("read_arrow", "columns", columns)
    stage = _arrow("read_arrow").ArrowFiles(
        files, chosen, file_key, _missing("read_arrow", missing)
    )
    return DataPipelineBuilder(stage)


def _missing(reader: str, values: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(texts(reader, "missing", values) or ()))


def _arrow(reader: str) -> "ModuleType":
    try:
        from dagster_dataops.readers.arrow import arrow_files
    except ImportError:
        raise MissingExtraError(reader, "arrow") from None
    return arrow_files

"""``read_warc``: read the pages of web archives as records."""

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from typing import Any, Final

from dagster_dataops.errors import MissingExtraError
from dagster_dataops.streams.core.arguments import texts
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths

CONTENT_TYPES: Final = ("response", "resource", "conversion")


def read_warc(
    path: GivenPaths,
    types: SequenceOf[str] | None = CONTENT_TYPES,
    *,
    binary: bool = False,
    file_key: str | None = None,
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read the records of WARC files; needs the extra ``warc``.

    Records are ``{"id", "type", "url", "date", "status", "content_type", "text"}``; ``status`` is
    the HTTP status, or ``None``. The text is decoded with the charset of its content type, else as
    UTF-8; invalid bytes become U+FFFD. A position is a byte offset of a record. Resuming is
    immediate in files that are compressed record by record, which is the standard.

    Args:
        path: A file, a list of files, a folder or a pattern, also as URLs; see `read_jsonl`.
        types: The record types to keep; all if ``None``.
        binary: Whether records hold the content as base64 text in ``base64`` instead of ``text``.
        file_key: The key under which each record holds its file path; ``None`` for no such key.
        compression: See `read_jsonl`.
        storage_options: See `read_jsonl`.

    Raises:
        MissingExtraError: warcio is not installed.
    """
    try:
        from dagster_dataops.readers.warc.warc_records import WarcFiles
    except ImportError:
        raise MissingExtraError("read_warc", "warc") from None
    chosen = texts("read_warc", "types", types)
    files = FileSet.of("read_warc", path, compression, storage_options)
    return DataPipelineBuilder(WarcFiles(files, chosen, binary, file_key))

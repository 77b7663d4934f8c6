"""``read_warc``: the pages of web archives as records."""

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from typing import Any, Final

from dagster_dataops.errors import MissingExtraError, StreamArgumentError
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

    They are ``{"id", "type", "url", "date", "status", "content_type", "text"}``; ``status`` is
    that of HTTP, ``None`` of records without. The text is decoded by the charset of its type, else
    as UTF-8, and what is no text is replaced by U+FFFD. A position is the byte at which a record
    begins, and is gone to at once in files packed record by record, as they should be.

    Args:
        path: A file, a list of files, a folder or wildcards, also by URL; see `read_jsonl`.
        types: Of records; the others are passed over. All if ``None``.
        binary: Whether records have ``base64``, the content as base64, in place of ``text``.
        file_key: With it, the key of a record's file.
        compression: See `read_jsonl`.
        storage_options: See `read_jsonl`.

    Raises:
        MissingExtraError: warcio is not installed.
    """
    try:
        from dagster_dataops.readers.warc.warc_records import WarcFiles
    except ImportError:
        raise MissingExtraError("read_warc", "warc") from None
    if isinstance(types, str):
        raise StreamArgumentError("read_warc", f"types is {types!r}; it must be a list of texts")
    files = FileSet.of("read_warc", path, compression, storage_options)
    chosen = None if types is None else tuple(types)
    return DataPipelineBuilder(WarcFiles(files, chosen, binary, file_key))

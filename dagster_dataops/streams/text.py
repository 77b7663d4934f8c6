"""The namespace ``text``: streams of lines.

>>> from dagster_dataops import text
>>> stream = text.read_text("file.tsv")
"""

from collections.abc import Mapping
from typing import Any

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.factories import block_bytes
from dagster_dataops.streams.files.file_sets import INFER, FileSet, GivenPaths
from dagster_dataops.streams.files.file_stages import Origin
from dagster_dataops.streams.files.text_lines import LineEnding, Lines, known_encoding

__all__ = ["LineEnding", "read_text"]


def read_text(  # noqa: PLR0913, PLR0917 - the arguments that users know
    path: GivenPaths,
    key: str | None = None,
    encoding: str | None = None,
    line_ending: LineEnding = LineEnding.INFER,
    ltrim: bool = False,
    rtrim: bool = False,
    skip_empty: bool = False,
    memory_map: bool = False,
    block_size: int | None = None,
    *,
    file_key: str | None = None,
    line_key: str | None = None,
    compression: str | None = INFER,
    storage_options: Mapping[str, Any] | None = None,
) -> DataPipelineBuilder:
    """Read the lines of files, without what ends them; the last needs no end.

    Args:
        path: A file, a list of files, a folder or wildcards; see `read_jsonl`.
        key: With it, lines come as ``{key: line}``.
        encoding: UTF-8 if ``None``; ``utf-8-sig`` takes a byte order mark off.
        line_ending: What ends a line.
        ltrim: Whether white space before a line is taken off.
        rtrim: Whether white space behind it is.
        skip_empty: Whether empty lines are passed over; those of white space are not empty.
        memory_map: Without effect: files are read in blocks.
        block_size: How many bytes to read at once, at least 1024.
        file_key: With it and ``key``, the key of a line's file.
        line_key: With it and ``key``, the key of a line's number, counted from 1.
        compression: See `read_jsonl`.
        storage_options: See `read_jsonl`.

    Raises:
        StreamDefinitionError: An encoding nobody knows, too small a block, or the place of lines
            that are no records.
    """
    del memory_map
    origin = Origin(file_key, line_key)
    if key is None and any(origin):
        raise StreamDefinitionError("read_text", "file_key and line_key need a key for the line")
    return DataPipelineBuilder(
        Lines(
            FileSet.of("read_text", path, compression, storage_options),
            key,
            known_encoding(encoding),
            LineEnding(line_ending),
            ltrim,
            rtrim,
            skip_empty,
            block_bytes("read_text", block_size),
            origin,
        )
    )

"""The namespace ``text``: streams of text lines.

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
from dagster_dataops.streams.files.text_lines import LineEnding, TextLines, known_encoding

__all__ = ["LineEnding", "read_text"]


def __dir__() -> list[str]:
    return __all__


def read_text(  # noqa: PLR0913, PLR0917 - the signature that users of fairseq2 know
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
    r"""Read the lines of files without their terminators; the last line may lack one.

    >>> Path("lines.txt").write_text("one\ntwo\n")
    8
    >>> list(read_text("lines.txt", key="text").and_return())
    [{'text': 'one'}, {'text': 'two'}]

    Args:
        path: A file, a list of files, a folder or a pattern; see `read_jsonl`.
        key: The key of a line in a record ``{key: line}``; ``None`` yields lines as texts.
        encoding: The encoding; UTF-8 if ``None``. A byte order mark is removed.
        line_ending: The line terminator.
        ltrim: Whether to remove white space at the start of lines.
        rtrim: Whether to remove white space at the end of lines.
        skip_empty: Whether to skip empty lines. Lines of white space are not empty.
        memory_map: No effect: files are read in blocks.
        block_size: The number of bytes to read at once, at least 1024.
        file_key: The key under which each record holds its file path; needs ``key``.
        line_key: The key under which each record holds its line number, counted from 1; needs
            ``key``.
        compression: See `read_jsonl`.
        storage_options: See `read_jsonl`.

    Raises:
        StreamDefinitionError: The encoding is unknown, the block is too small, or ``file_key`` or
            ``line_key`` is given without ``key``.
    """
    del memory_map
    origin = Origin(file_key, line_key)
    if key is None and any(origin):
        raise StreamDefinitionError("read_text", "file_key and line_key need a key for the line")
    return DataPipelineBuilder(
        TextLines(
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

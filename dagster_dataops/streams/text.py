"""The namespace ``text``: streams of lines.

>>> from dagster_dataops import text
>>> stream = text.read_text("file.tsv")
"""

import os

from dagster_dataops.streams.lines import LineEnding, Lines, known_encoding
from dagster_dataops.streams.pipeline import DataPipelineBuilder
from dagster_dataops.streams.sources import block_bytes

__all__ = ["LineEnding", "read_text"]


def read_text(  # noqa: PLR0913, PLR0917 - the arguments that users know
    path: str | os.PathLike[str],
    key: str | None = None,
    encoding: str | None = None,
    line_ending: LineEnding = LineEnding.INFER,
    ltrim: bool = False,
    rtrim: bool = False,
    skip_empty: bool = False,
    memory_map: bool = False,
    block_size: int | None = None,
) -> DataPipelineBuilder:
    """Read the lines of a file, without what ends them; the last needs no end.

    Args:
        path: The file.
        key: With it, lines come as ``{key: line}``.
        encoding: UTF-8 if ``None``; ``utf-8-sig`` takes a byte order mark off.
        line_ending: What ends a line.
        ltrim: Whether white space before a line is taken off.
        rtrim: Whether white space behind it is.
        skip_empty: Whether empty lines are passed over; those of white space are not empty.
        memory_map: Without effect: files are read in blocks.
        block_size: How many bytes to read at once, at least 1024.

    Raises:
        StreamDefinitionError: An encoding nobody knows, or too small a block.
    """
    del memory_map
    return DataPipelineBuilder(
        Lines(
            os.fspath(path),
            key,
            known_encoding(encoding),
            LineEnding(line_ending),
            ltrim,
            rtrim,
            skip_empty,
            block_bytes("read_text", block_size),
        )
    )

"""Read span outputs back from segments, mostly in the order in which they were written."""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.journal.segments import checksum, segment_path
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.foundation.places.range_source import read_range

_BLOCK: Final = 256 << 10
_BLOCKS: Final = 64
_JOINED: Final = 1 << 20
_FILES: Final = 64


def outputs(
    folder: Path, places: Iterable[tuple[Span, int, int]], damaged: list[int]
) -> Iterator[tuple[Span, bytes]]:
    """Yield spans with their result and error lines.

    Args:
        folder: The checkpoint's folder.
        places: The spans with segment and offset, as `SpanTable.ordered` yields them.
        damaged: Receives the starts of spans whose checksum is wrong; these spans are left out.
    """
    with closing(SegmentReader(folder)) as reader:
        for span, segment, offset in places:
            output = reader.read(segment, offset, span.output_bytes + span.error_bytes)
            if checksum(output) == span.output_check:
                yield span, output
            else:
                damaged.append(span.start)


def joined_outputs(
    folder: Path, table: SpanTable, damaged: list[int]
) -> Iterator[tuple[int, bytes]]:
    """Yield the outputs of spans without error lines, about a megabyte at a time, in input order.

    There may be hundreds of thousands of spans of one record, so a single loop handles each.

    Args:
        folder: The checkpoint's folder.
        table: Its spans; none has error lines.
        damaged: Receives the starts of spans whose checksum is wrong; their output is left out.

    Yields:
        Number of result records; their lines.
    """
    joined: list[bytes] = []
    rows = size = 0
    with closing(SegmentReader(folder)) as reader:
        for start, emitted, length, check, segment, offset in table.places():
            output = reader.read(segment, offset, length)
            if checksum(output) != check:
                damaged.append(start)
                continue
            if size and size + length > _JOINED:
                yield rows, b"".join(joined)
                joined.clear()
                rows = size = 0
            if length >= _BLOCK and not size:
                yield emitted, output
                del output  # before the next one is read, which takes its memory
                continue
            joined.append(output)
            rows += emitted
            size += length
        if size:
            yield rows, b"".join(joined)


class SegmentReader:
    """Random access to the segments of one checkpoint, with a small cache of blocks.

    Spans of one record are read in input order, and were written in the order in which they
    finished: close to one another, but not in a row.

    Args:
        folder: Of the checkpoint.
        result: The published result, if it is the only segment.
    """

    def __init__(self, folder: Path, result: Path | None = None) -> None:
        self._folder = folder
        self._result = result
        self._files: OrderedDict[int, int] = OrderedDict()
        self._blocks: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    def read(self, segment: int, offset: int, length: int) -> bytes:
        """Return the bytes; fewer if the segment is missing or too short.

        Raises:
            StorageError: The segment cannot be read.
        """
        number, within = divmod(offset, _BLOCK)
        if within + length <= _BLOCK:
            return self._block(segment, number)[within : within + length]
        return self._read(segment, offset, length)

    def _block(self, segment: int, number: int) -> bytes:
        key = (segment, number)
        block = self._blocks.get(key)
        if block is None:
            block = self._read(segment, number * _BLOCK, _BLOCK)
            self._blocks[key] = block
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        return block

    def _read(self, segment: int, offset: int, length: int) -> bytes:
        # An error does not mean damage: a network file system may be able to read the file later.
        path = self._result or segment_path(self._folder, segment)
        with storage(path, "read it back"):
            exists = segment in self._files or path.exists()
            return read_range(self._file(segment, path), offset, length) if exists else b""

    def _file(self, segment: int, path: Path) -> int:
        descriptor = self._files.get(segment)
        if descriptor is None:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._files[segment] = descriptor
            if len(self._files) > _FILES:
                os.close(self._files.popitem(last=False)[1])
        return descriptor

    def close(self) -> None:
        """Close every segment."""
        while self._files:
            os.close(self._files.popitem()[1])

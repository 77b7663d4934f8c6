"""Read span outputs back from segments, mostly in the order in which they were written."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

from dagster_dataops.checkpoints.journal.segments import Segments, checksum
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.foundation.places.range_source import Readable, close_readable, read_range

_BLOCK: Final = 256 << 10
_BLOCKS: Final = 64
_JOINED: Final = 1 << 20
_FILES: Final = 64


def outputs(
    segments: Segments, places: Iterable[tuple[Span, int, int]], damaged: list[int]
) -> Iterator[tuple[Span, bytes]]:
    """Yield spans with their result and error lines.

    Args:
        segments: Of the checkpoint.
        places: The spans with segment and offset, as `SpanTable.ordered` yields them.
        damaged: Receives the starts of spans whose checksum is wrong; these spans are left out.
    """
    with closing(SegmentReader(segments)) as reader:
        for span, segment, offset in places:
            output = reader.read(segment, offset, span.output_bytes + span.error_bytes)
            if checksum(output) == span.output_check:
                yield span, output
            else:
                damaged.append(span.start)


def joined_outputs(
    segments: Segments, table: SpanTable, damaged: list[int]
) -> Iterator[tuple[int, bytes]]:
    """Yield the outputs of spans without error lines, about a megabyte at a time, in input order.

    There may be hundreds of thousands of spans of one record, so a single loop handles each.

    Args:
        segments: Of the checkpoint.
        table: Its spans; none has error lines.
        damaged: Receives the starts of spans whose checksum is wrong; their output is left out.

    Yields:
        Number of result records; their lines.
    """
    joined: list[bytes] = []
    rows = size = 0
    with closing(SegmentReader(segments)) as reader:
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
    """

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._files: OrderedDict[int, Readable] = OrderedDict()
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
        with storage(self._segments.location(segment), "read it back"):
            file = self._file(segment)
            return b"" if file is None else read_range(file, offset, length)

    def _file(self, segment: int) -> Readable | None:
        file = self._files.get(segment)
        if file is None:
            file = self._segments.open(segment)
            if file is not None:
                self._files[segment] = file
            if len(self._files) > _FILES:
                close_readable(self._files.popitem(last=False)[1])
        return file

    def close(self) -> None:
        """Close every segment."""
        while self._files:
            close_readable(self._files.popitem()[1])

"""`SketchFiles`: the sketches of all records in files, read by band or by record."""

import base64
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.library.dedup.algorithms.equal_buckets import (
    SORT_BYTES,
    BucketMembers,
    equal_buckets,
)
from dagster_dataops.library.sorting.spill_lists import passes

_BLOCK_BYTES: Final = 1 << 20
_BUCKET_BYTES: Final = 8


class SketchFiles:
    """Stores sketches in an empty folder: the buckets, the rank value and the n-gram hashes.

    Attributes:
        bands: The number of buckets of each record.
        count: The number of records.
    """

    def __init__(self, folder: Path, bands: int) -> None:
        import numpy

        self._numpy = numpy
        self.bands = bands
        self._block = max(1, _BLOCK_BYTES // (_BUCKET_BYTES * bands))  # records
        self._paths = [folder / name for name in ("buckets", "ranks", "hashes", "ends")]
        self._open: list[BinaryIO] = []
        self._end = 0  # of the stored hashes, in bytes
        self.count = 0

    def write(self, sketches: Iterable[list[Any]]) -> None:
        """Write all sketches."""
        rest = iter(sketches)
        self._create()
        while block := list(islice(rest, self._block)):
            self.count += len(block)
            with storage(self._paths[0].parent, "write"):
                self._write_block(block)
        self.flush()

    def write_rest(self, count: int, ranks: bytes, lengths: Any, hashes: bytes) -> None:
        """Write the rank values and the hashes of records whose buckets are elsewhere.

        Args:
            count: The number of records.
            ranks: The rank values; empty if there are none.
            lengths: The bytes of the hashes of each record, as an array; empty if there are none.
            hashes: The hashes.
        """
        if not self._open:
            self._create()
        self.count += count
        with storage(self._paths[0].parent, "write"):
            self._open[1].write(ranks)
            self._open[2].write(hashes)
            ends = self._numpy.cumsum(lengths, dtype="<u8") + self._numpy.uint64(self._end)
            self._open[3].write(ends.tobytes())
        self._end += len(hashes)

    def flush(self) -> None:
        """Write what waits in memory, so that it can be read."""
        for file in self._open:
            with storage(Path(file.name), "write"):
                file.flush()

    def _write_block(self, block: list[list[Any]]) -> None:
        buckets, ranks, hashes, ends = self._open
        rows = bytes.fromhex("".join(sketch[0] for sketch in block))
        matrix = self._numpy.frombuffer(rows, "<u8").reshape(len(block), self.bands)
        buckets.write(matrix.T.tobytes())
        if len(block[0]) > 1:
            values = [sketch[1] for sketch in block]
            ranks.write(self._numpy.array(values, "<f8").tobytes())
        for sketch in block if len(block[0]) > 2 else ():
            self._end += hashes.write(decoded_hashes(sketch))
            ends.write(self._end.to_bytes(8, "little"))

    def _create(self) -> None:
        for path in self._paths:
            with storage(path, "write"):
                self._open.append(path.open("w+b"))

    def shared(self, max_bytes: int) -> Iterator[BucketMembers]:
        """Yield the buckets that several records share."""
        turns = passes(self.count, SORT_BYTES, max_bytes)
        for band in range(self.bands):
            for turn in range(turns):
                buckets, positions = self._part(band, turn, turns)
                entries, numbers, count = equal_buckets(buckets)
                yield BucketMembers(positions[entries], numbers, count)

    def _part(self, band: int, turn: int, turns: int) -> tuple[Any, Any]:
        """Return the buckets of one turn, and the positions of their records."""
        numpy = self._numpy
        buckets, positions = [], []
        for first, block in self._buckets(band):
            if turns == 1:
                places = numpy.arange(len(block))
            else:
                places = numpy.nonzero(block % numpy.uint64(turns) == turn)[0]
            buckets.append(block[places])
            positions.append(places + first)
        empty = numpy.zeros(0, "<u8")
        return numpy.concatenate([empty, *buckets]), numpy.concatenate(
            [empty.astype(int), *positions]
        )

    def _buckets(self, band: int) -> Iterator[tuple[int, Any]]:
        """Yield the position of the first record of a block, and the buckets of the block."""
        for first in range(0, self.count, self._block):
            length = min(self._block, self.count - first)
            start = (first * self.bands + band * length) * _BUCKET_BYTES
            yield first, self._numpy.frombuffer(self._read(0, start, length * _BUCKET_BYTES), "<u8")

    def ranks(self) -> Any:
        """Return the rank values of all records, in input order."""
        return self._numpy.frombuffer(self._read(1, 0, self.count * 8), "<f8")

    def hashes(self, position: int) -> Any:
        """Return the sorted hashes of the n-grams of a record."""
        both = self._read(3, max(0, position - 1) * 8, 16 if position else 8)
        ends = [int.from_bytes(both[at : at + 8], "little") for at in range(0, len(both), 8)]
        start = ends[0] if position else 0
        return self._numpy.frombuffer(self._read(2, start, ends[-1] - start), "<u4")

    def _read(self, number: int, start: int, length: int) -> bytes:
        with storage(self._paths[number], "read"):
            return os.pread(self._open[number].fileno(), length, start)

    def close(self) -> None:
        """Close the files."""
        for file in self._open:
            file.close()


def decoded_hashes(sketch: list[Any]) -> bytes:
    """Return the hashes in a sketch, 4 bytes each."""
    return base64.b64decode(sketch[2])


def packed_hashes(hashes: Any) -> str:
    """Return the high 32 bits of 64-bit hashes as text for a sketch, sorted and each once."""
    import numpy

    high = numpy.unique((hashes >> numpy.uint64(32)).astype("<u4"))
    return base64.b64encode(high.tobytes()).decode()


def packed_value(value: int) -> str:
    """Return a 64-bit value as text for a sketch, in the place of hashes."""
    return base64.b64encode(value.to_bytes(8, "little")).decode()

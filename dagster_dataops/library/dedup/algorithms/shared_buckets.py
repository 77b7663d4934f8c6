"""Find the buckets that several records share, with more records than memory holds.

Each band is read in turn, and its buckets are sorted; if they do not fit in memory, several times
with a part of the buckets each. Buckets with one record affect nothing and are left out. The others
are numbered. The pairs of record and bucket number are then partitioned by ranges of records, so
that they can be read in the order of the records.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.durable_files import make_folder, storage
from dagster_dataops.library.dedup.algorithms.sketch_files import SketchFiles
from dagster_dataops.library.sorting.spill_lists import passes

_SORT_BYTES: Final = 48  # per bucket while they are sorted
_PAIR_BYTES: Final = 16
_WINDOW_BYTES: Final = 4 * _PAIR_BYTES  # per pair of a window while it is sorted
_BLOCK_PAIRS: Final = 64 << 10


class SharedBuckets:
    """The buckets of sketches that several records share.

    Without ranks, records are ranked by position. The folder is empty, and the memory limit is
    approximate.

    Attributes:
        count: The number of buckets.
        pairs: The number of pairs of record and bucket.
    """

    def __init__(self, sketches: SketchFiles, ranks: Any, folder: Path, max_bytes: int) -> None:
        import numpy

        self._numpy = numpy
        self._sketches, self._ranks = sketches, ranks
        self._folder, self._max_bytes = folder, max_bytes
        self.count = self.pairs = 0
        make_folder(folder)
        path = folder / "pairs"
        with storage(path, "write"), path.open("wb") as file:
            for band in range(sketches.bands):
                for pairs in self._of_band(band):
                    file.write(pairs)
        self._windows = passes(self.pairs, _WINDOW_BYTES, max_bytes)
        self._partition(path)

    def _of_band(self, band: int) -> Iterator[bytes]:
        """Yield pairs of rank and bucket number, 16 bytes each."""
        numpy = self._numpy
        turns = passes(self._sketches.count, _SORT_BYTES, self._max_bytes)
        for turn in range(turns):
            buckets, positions = self._part(band, turn, turns)
            order = numpy.argsort(buckets, kind="stable")
            buckets = buckets[order]
            again = numpy.zeros(len(buckets) + 1, bool)  # equal to the one before
            again[1:-1] = buckets[1:] == buckets[:-1]
            shared = again[:-1] | again[1:]
            numbers = numpy.cumsum(~again[:-1] & shared) - 1
            records = positions[order[shared]]
            pairs = numpy.empty((len(records), 2), "<u8")
            pairs[:, 0] = records if self._ranks is None else self._ranks[records]
            pairs[:, 1] = numbers[shared] + self.count
            self.pairs += len(pairs)
            self.count += int((~again[:-1] & shared).sum())
            yield pairs.tobytes()

    def _part(self, band: int, turn: int, turns: int) -> tuple[Any, Any]:
        """Return the buckets of one turn, and the positions of their records."""
        numpy = self._numpy
        buckets, positions = [], []
        for first, block in self._sketches.buckets(band):
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

    def _partition(self, path: Path) -> None:
        """Distribute the pairs to files by ranges of ranks."""
        if self._windows == 1:
            with storage(path, "write"):
                path.rename(self._window(0))
            return
        numpy = self._numpy
        with storage(path, "read"), path.open("rb") as file:
            while block := file.read(_BLOCK_PAIRS * _PAIR_BYTES):
                pairs = numpy.frombuffer(block, "<u8").reshape(-1, 2)
                windows = pairs[:, 0] * numpy.uint64(self._windows) // self._sketches.count
                for window in numpy.unique(windows):
                    with self._window(int(window)).open("ab") as part:
                        part.write(pairs[windows == window].tobytes())
        path.unlink()

    def _window(self, number: int) -> Path:
        return self._folder / f"{number:06d}"

    def by_rank(self) -> Iterator[tuple[int, list[int]]]:
        """Yield each rank that shares buckets, in rising order, with the numbers of the buckets."""
        numpy = self._numpy
        for number in range(self._windows):
            path = self._window(number)
            if not path.exists():
                continue
            with storage(path, "read"):
                pairs = numpy.frombuffer(path.read_bytes(), "<u8").reshape(-1, 2)
                path.unlink()
            pairs = pairs[numpy.lexsort((pairs[:, 1], pairs[:, 0]))]
            ranks, starts = numpy.unique(pairs[:, 0], return_index=True)
            groups = numpy.split(pairs[:, 1], starts[1:])
            for rank, buckets in zip(ranks.tolist(), groups, strict=False):  # one group of nothing
                yield rank, buckets.tolist()

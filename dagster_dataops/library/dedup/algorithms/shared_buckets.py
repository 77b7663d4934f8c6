"""List the buckets that records share by record, with more records than memory holds.

The pairs of record and bucket number are partitioned by ranges of records, so that they can be read
in the order of the records.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from dagster_dataops.datasets.durable_files import make_folder, storage
from dagster_dataops.library.dedup.algorithms.equal_buckets import BucketMembers
from dagster_dataops.library.sorting.spill_lists import passes

_PAIR_BYTES: Final = 16
_WINDOW_BYTES: Final = 4 * _PAIR_BYTES  # per pair of a window while it is sorted
_BLOCK_PAIRS: Final = 64 << 10


class SharedBuckets:
    """The buckets of sketches that several records share.

    Args:
        members: Those of these buckets.
        count: The number of records.
        ranks: The rank of each record; ``None`` if they are ranked by position.
        folder: For files; it does not exist.
        max_bytes: The approximate memory limit.

    Attributes:
        count: The number of buckets.
        pairs: The number of pairs of record and bucket.
    """

    def __init__(
        self, members: Iterable[BucketMembers], count: int, ranks: Any, folder: Path, max_bytes: int
    ) -> None:
        import numpy

        self._numpy, self._folder, self._records = numpy, folder, count
        self.count = self.pairs = 0
        make_folder(folder)
        path = folder / "pairs"
        with storage(path, "write"), path.open("wb") as file:
            for positions, numbers, buckets in members:
                pairs = numpy.empty((len(positions), 2), "<u8")
                pairs[:, 0] = positions if ranks is None else ranks[positions]
                pairs[:, 1] = numbers
                pairs[:, 1] += numpy.uint64(self.count)
                self.pairs += len(pairs)
                self.count += buckets
                file.write(pairs.tobytes())
        self._windows = passes(self.pairs, _WINDOW_BYTES, max_bytes)
        self._partition(path)

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
                windows = pairs[:, 0] * numpy.uint64(self._windows) // self._records
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

"""`PreparedIndex`: the index that ``energon prepare`` wrote, read as it is."""

from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dagster_dataops.errors import IndexOutdatedError
from dagster_dataops.filestores.energon_layout import META, ShardedDataset, joined, prepared_counts
from dagster_dataops.filestores.tars.shard_scan import Parts, ScannedShard, Shard
from dagster_dataops.filestores.tars.tar_index import SqliteFile, scanned
from dagster_dataops.hashing.values import digest
from dagster_dataops.streams.files.locations import Location

_OF_KEY = """
    SELECT samples.tar_file_id, samples.byte_offset, part_name, content_byte_offset,
        content_byte_size
    FROM samples JOIN sample_parts USING (tar_file_id, sample_index) WHERE sample_key = ?
"""


def prepared_index(dataset: ShardedDataset) -> "PreparedIndex | None":
    """Return the index of a local dataset that Energon prepared; ``None`` if it is not complete."""
    path = Path(dataset.path) / META / "index.sqlite"
    local = all(one.location.is_plain for one in dataset.shards)
    if not (local and path.is_file()):
        return None
    if not all(Path(f"{one.location.path}.idx").is_file() for one in dataset.shards):
        return None
    counts = prepared_counts(dataset)
    return PreparedIndex(dataset, path, counts) if counts else None


class PreparedIndex:
    """The samples of a dataset by key and by number, from Energon's files.

    Args:
        dataset: The dataset.
        path: The file ``index.sqlite``.
        counts: The number of samples of each shard, in the order of their numbers in the file.
    """

    duplicates = "error"

    def __init__(self, dataset: ShardedDataset, path: Path, counts: Mapping[str, int]) -> None:
        self.dataset, self.shards = dataset.path, dataset.shards
        self._file = SqliteFile(path.absolute())
        folder, options = dataset.path, dataset.storage_options
        known = {one.name: one for one in dataset.shards}
        self._all = [known.get(name) or _shard(folder, name, options) for name in counts]
        stamps = [one.location.stamp() for one in dataset.shards]
        status = path.stat()
        self.version = digest([folder, status.st_size, status.st_mtime_ns, stamps])

    def starts(self, number: int) -> "array[int]":
        """Return the first byte of each sample of a shard, then the first byte behind the last.

        Raises:
            IndexOutdatedError: The shard is shorter than its index.
        """
        path = self.shards[number].location.path
        data = Path(f"{path}.idx").read_bytes()
        found = array("Q")
        found.frombytes(data[: len(data) // 8 * 8])
        if not found or found[-1] > self.shards[number].location.size():
            raise IndexOutdatedError(path, f"{path}.idx does not fit it")
        return found

    def is_current(self, shard: Shard) -> bool:  # noqa: ARG002 - as `TarIndex` has it
        """Return whether a shard is the file that was indexed; Energon's files do not tell."""
        return False

    def dropped(self) -> dict[int, frozenset[int]]:
        """Return the samples that are left out as duplicates: none."""
        return {}

    def find(self, key: str) -> tuple[Shard, int, Parts] | None:
        """Return shard, first byte and parts of a sample; ``None`` if there is none."""
        parts: Parts = {}
        place: tuple[Shard, int] | None = None
        for number, at, part, offset, size in self._file.query(_OF_KEY, (key,)):
            place = self._all[number], at
            parts.setdefault(part, [offset, size])
        return None if place is None else (*place, parts)

    def names(self) -> Iterator[str]:
        """Yield the names of all files, sorted by key."""
        query = """
            SELECT sample_key, part_name FROM samples
            JOIN sample_parts USING (tar_file_id, sample_index) ORDER BY sample_key
        """
        for key, part in self._file.query(query):
            yield f"{key}.{part}"

    def count(self) -> int:
        """Return the number of samples of all splits."""
        found: int = self._file.query("SELECT count(*) FROM samples").fetchone()[0]
        return found

    def rows(self, number: int) -> ScannedShard:
        """Return the samples of a shard."""
        return scanned(self.shards[number], self.dataset, self.duplicates)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _shard(folder: str, name: str, options: Mapping[str, Any]) -> Shard:
    return Shard(name, Location(joined(folder, name), None, options))

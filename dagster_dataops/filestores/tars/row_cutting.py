"""Cut a shard into samples by the rows of its scan, without reading its headers again."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Any, Final

from dagster_dataops.errors import DuplicateKeyError, IndexOutdatedError, StreamSourceError
from dagster_dataops.filestores.source_info import SOURCES, SourceInfo
from dagster_dataops.filestores.tars.open_shards import SampleReader
from dagster_dataops.filestores.tars.shard_scan import BY_TARFILE, Parts, ScannedShard
from dagster_dataops.filestores.tars.tar_samples import CutSamples, ShardIdentity
from dagster_dataops.streams.files.contents import Content

MAX_ROWS: Final = 50_000  # the rows of a shard that are held in memory


def is_cuttable(found: ScannedShard) -> bool:
    """Whether all parts can be read by offset and size."""
    return all(size != BY_TARFILE for _, _, parts in found.rows for _, size in parts.values())


def cut_by_rows(
    identity: ShardIdentity, content: Content, found: ScannedShard, place: tuple[int, int, int]
) -> Iterator[CutSamples]:
    """Yield the samples of a shard, some at once.

    Args:
        identity: The shard.
        content: Its bytes.
        found: Its scan.
        place: The first byte to read, the number of the first sample in the dataset, and the number
            of bytes to read at once.

    Raises:
        IndexOutdatedError: The shard is shorter than its scan.
        StreamSourceError: The shard is torn or damaged behind the samples.
    """
    begin, first, size = place
    starts, rows = found.starts(), found.rows
    number = bisect_left(starts, begin)
    while number < len(rows):
        start = starts[number]
        stop = max(number + 1, bisect_right(starts, start + size) - 1)
        data = content.read_at(starts[stop] - start, start)
        if len(data) < starts[stop] - start:
            reason = f"it ends before byte {starts[stop]:,}"
            raise content.failure or IndexOutdatedError(identity.path, reason)
        samples = _samples(identity, rows[number:stop], data, (start, first))
        is_last = stop == len(rows) and not found.error
        yield CutSamples(samples, starts[number : stop + 1], is_last)
        first, number = first + len(samples), stop
    if found.error:
        raise StreamSourceError(*found.error)


def row_reader(
    identity: ShardIdentity, found: ScannedShard, first: int, read: Callable[[int, int], bytes]
) -> SampleReader:
    """Return a function that reads a sample by its row; see `OpenShards.reader`.

    Args:
        identity: The shard.
        found: Its scan.
        first: The number of its first sample in the dataset.
        read: Reads bytes of the shard.
    """
    rows = found.rows

    def sample(start: int, end: int, number: int) -> dict[str, Any]:
        data = read(end - start, start)
        if len(data) < end - start:
            raise IndexOutdatedError(identity.path, f"it ends before byte {end:,}")
        return _samples(identity, [rows[number - first]], data, (start, number))[0]

    return sample


def _samples(
    identity: ShardIdentity,
    rows: list[tuple[str, int, Parts]],
    data: bytes,
    place: tuple[int, int],
) -> list[dict[str, Any]]:
    base, first = place
    dataset, shard, wanted = identity.dataset, identity.shard, identity.parts
    copy_subflavors = identity.copy_subflavors
    samples = []
    for index, (key, _, parts) in enumerate(rows, first):
        names: list[str] = []
        source = {
            "dataset_path": dataset,
            "index": index,
            "shard_name": shard,
            "file_names": names,
        }
        sample: dict[str, Any] = {
            "__key__": key,
            "__restore_key__": [dataset, shard, key],
            "__shard__": shard,
            SOURCES: [SourceInfo(source)],
            "__subflavors__": copy_subflavors(),
        }
        for part, (offset, size) in parts.items():
            if wanted is not None and part not in wanted:
                continue
            if part in sample:
                raise DuplicateKeyError(dataset, f"{key}.{part}", shard, shard)
            at = offset - base
            sample[part] = data[at : at + size]
            names.append(f"{key}.{part}")
        samples.append(sample)
    return samples

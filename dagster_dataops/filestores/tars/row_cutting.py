"""Cut a shard into samples by the rows of its scan, without reading its headers again."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import count, repeat
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import DuplicateKeyError, IndexOutdatedError, StreamSourceError
from dagster_dataops.filestores.source_info import SOURCES, SourceInfo
from dagster_dataops.filestores.tars.open_shards import SampleReader
from dagster_dataops.filestores.tars.shard_scan import Parts, ScannedShard
from dagster_dataops.filestores.tars.tar_samples import CutSamples, ShardIdentity
from dagster_dataops.streams.files.contents import Content

MAX_ROWS: Final = 50_000  # the rows of a shard that are held in memory

SampleMaker: TypeAlias = Callable[[str, Parts, int, bytes, int], dict[str, Any]]


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
    keys, starts, parts = found.keys, found.starts, found.parts
    made = _sample_maker(identity)
    number = bisect_left(starts, begin)
    while number < len(keys):
        start = starts[number]
        stop = max(number + 1, bisect_right(starts, start + size) - 1)
        data = content.read_at(starts[stop] - start, start)
        if len(data) < starts[stop] - start:
            reason = f"it ends before byte {starts[stop]:,}"
            raise content.failure or IndexOutdatedError(identity.path, reason)
        rows = keys[number:stop], parts[number:stop]
        samples = list(map(made, *rows, count(first), repeat(data), repeat(start)))
        is_last = stop == len(keys) and not found.error
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
    keys, parts, made = found.keys, found.parts, _sample_maker(identity)

    def sample(start: int, end: int, number: int) -> dict[str, Any]:
        data = read(end - start, start)
        if len(data) < end - start:
            raise IndexOutdatedError(identity.path, f"it ends before byte {end:,}")
        at = number - first
        return made(keys[at], parts[at], number, data, start)

    return sample


def _sample_maker(identity: ShardIdentity) -> SampleMaker:
    """Return the function that makes a sample.

    It takes the key, the parts, the number of the sample in the dataset, bytes of the shard, and
    the offset of the first of them.
    """
    dataset, shard, wanted = identity.dataset, identity.shard, identity.parts
    copy_subflavors = identity.copy_subflavors

    def made(key: str, parts: Parts, number: int, data: bytes, base: int) -> dict[str, Any]:
        if wanted is not None:
            parts = {part: place for part, place in parts.items() if part in wanted}
        source = {
            "dataset_path": dataset,
            "index": number,
            "shard_name": shard,
            "file_names": [f"{key}.{part}" for part in parts],
        }
        sample: dict[str, Any] = {
            "__key__": key,
            "__restore_key__": [dataset, shard, key],
            "__shard__": shard,
            SOURCES: [SourceInfo(source)],
            "__subflavors__": copy_subflavors(),
        }
        for part, (offset, size) in parts.items():
            if part in sample:
                raise DuplicateKeyError(dataset, f"{key}.{part}", shard, shard)
            at = offset - base
            sample[part] = data[at : at + size]
        return sample

    return made

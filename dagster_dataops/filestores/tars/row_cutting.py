"""Cut a shard into samples by the rows of its scan, without reading its headers again."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from dagster_dataops.errors import IndexOutdatedError, StreamSourceError
from dagster_dataops.filestores.source_info import SOURCES, SourceInfo
from dagster_dataops.filestores.tars.open_shards import SampleReader
from dagster_dataops.filestores.tars.shard_scan import ScannedShard
from dagster_dataops.filestores.tars.tar_samples import CutSamples, ShardIdentity
from dagster_dataops.streams.files.contents import Content


def is_cuttable(found: ScannedShard) -> bool:
    """Return whether all parts can be read by offset and size, and none is named as a fact."""
    reserved = any(part.startswith("__") for shape in found.shapes for part in shape)
    return found.is_common and not reserved


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
    starts, count = found.starts, len(found.keys)
    number = bisect_left(starts, begin)
    made = _sample_maker(identity, found, first - number)
    while number < count:
        start = starts[number]
        stop = max(number + 1, bisect_right(starts, start + size) - 1)
        data = content.read_at(starts[stop] - start, start)
        if len(data) < starts[stop] - start:
            reason = f"it ends before byte {starts[stop]:,}"
            raise content.failure or IndexOutdatedError(identity.path, reason)
        samples = list(map(made, range(number, stop), repeat(data), repeat(start)))
        is_last = stop == count and not found.error
        yield CutSamples(samples, starts[number : stop + 1], is_last)
        number = stop
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
    starts, made = found.starts, _sample_maker(identity, found, first)

    def sample(row: int) -> dict[str, Any]:
        start = starts[row]
        size = starts[row + 1] - start
        data = read(size, start)
        if len(data) < size:
            raise IndexOutdatedError(identity.path, f"it ends before byte {start + size:,}")
        return made(row, data, start)

    return sample


def _sample_maker(
    identity: ShardIdentity, found: ScannedShard, first: int
) -> Callable[[int, bytes, int], dict[str, Any]]:
    """Return a function that makes the sample of a row.

    It takes the number of the row, bytes of the shard, and the offset of the first of them.
    Templates are copied, which is faster than adding keys.

    Args:
        identity: The shard.
        found: Its scan.
        first: The number of its first sample in the dataset.
    """
    dataset, shard, copy_subflavors = identity.dataset, identity.shard, identity.copy_subflavors
    keys, kinds, places, firsts = found.keys, found.kinds, found.places, found.firsts()
    shapes = [_shape(identity, shape) for shape in found.shapes]
    of_sources = dict(SourceInfo.of(dataset, 0, shard, []))

    def made(row: int, data: bytes, base: int) -> dict[str, Any]:
        key, begin = keys[row], firsts[row]
        copied, parts = shapes[kinds[row]]
        names: list[str] = []
        source = SourceInfo(of_sources)
        source["index"] = first + row
        source["file_names"] = names
        sample = copied()
        sample["__key__"] = key
        sample["__restore_key__"] = [dataset, shard, key]
        sample[SOURCES] = [source]
        sample["__subflavors__"] = copy_subflavors()
        for part, more in parts:
            place = begin + more
            at = places[place] - base
            sample[part] = data[at : at + places[place + 1]]
            names.append(f"{key}.{part}")
        return sample

    return made


def _shape(
    identity: ShardIdentity, shape: list[str]
) -> tuple[Callable[[], dict[str, Any]], list[tuple[str, int]]]:
    """Return a function that copies a sample to fill in, and each part with its distance."""
    wanted = identity.parts
    parts = [(part, 2 * at) for at, part in enumerate(shape) if wanted is None or part in wanted]
    sample = dict.fromkeys(("__key__", "__restore_key__", "__shard__", SOURCES, "__subflavors__"))
    sample["__shard__"] = identity.shard
    sample |= dict.fromkeys(part for part, _ in parts)
    return sample.copy, parts

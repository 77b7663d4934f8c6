"""Make samples by their places in a shard, without reading its headers in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, repeat
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import IndexOutdatedError
from dagster_dataops.records import SOURCES
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.training.filestores.source_info import SourceInfo
from dagster_dataops.training.filestores.tars.open_shards import SampleReader
from dagster_dataops.training.filestores.tars.shard_scan import (
    END,
    KEY,
    PLACES,
    SHAPE,
    START,
    PlacedSample,
)
from dagster_dataops.training.filestores.tars.tar_headers import BLOCK, UncommonTarError
from dagster_dataops.training.filestores.tars.tar_samples import (
    CutSamples,
    SampleCutter,
    ShardIdentity,
)

_NAME_TO_SIZE: Final = 124  # bytes of a header
_BEHIND_SIZE: Final = 135

Maker: TypeAlias = Callable[[PlacedSample, int, bytes, int], dict[str, Any]]
"""Makes a sample from its place, its number, and bytes of the shard that begin at an offset."""


def cut_by_rows(
    make: Maker,
    path: str,
    content: Content,
    places: Iterable[Sequence[PlacedSample]],
    first: int,
    size: int,
) -> Iterator[CutSamples]:
    """Yield the samples at places of a shard; ``size`` bytes or one sample are read at once.

    Raises:
        IndexOutdatedError: The shard is not the file that was indexed.
        StreamSourceError: The shard cannot be read.
    """
    for some in places:
        at = 0
        while at < len(some):
            start, stop = some[at][START], at + 1
            while stop < len(some) and some[stop][END] - start <= size:
                stop += 1
            chosen = some[at:stop]
            end = chosen[-1][END]
            data = content.read_at(end - start, start)
            if len(data) < end - start:
                raise content.failure or _too_short(path, end)
            samples = list(map(make, chosen, count(first), repeat(data), repeat(start)))
            yield CutSamples(samples, [*(sample[START] for sample in chosen), end], is_last=False)
            first += len(chosen)
            at = stop


def row_reader(make: Maker, path: str, read: Callable[[int, int], bytes]) -> SampleReader:
    """Return a function that reads a sample; see `OpenShards.reader`."""

    def sample(placed: PlacedSample, number: int) -> dict[str, Any]:
        start = placed[START]
        size = placed[END] - start
        data = read(size, start)
        if len(data) < size:
            raise _too_short(path, placed[END])
        return make(placed, number, data, start)

    return sample


def _too_short(path: str, end: int) -> IndexOutdatedError:
    return IndexOutdatedError(path, f"it ends before byte {end:,}")


def sample_maker(identity: ShardIdentity, shapes: Sequence[Sequence[str]]) -> Maker:
    """Return a function that makes a sample of its place.

    If the shard is not trusted, the headers are compared with the index.
    """
    maker = _trusting_maker(identity, shapes)
    if identity.trusted:
        return maker
    cutter = SampleCutter(identity)
    names = [
        [(f".{part}\0".encode("utf-8", "surrogateescape"), place) for part, place in _places(shape)]
        for shape in shapes
    ]

    def checked(placed: PlacedSample, number: int, data: bytes, base: int) -> dict[str, Any]:
        key, header = placed[KEY].encode("utf-8", "surrogateescape"), base + BLOCK
        for name, place in names[placed[SHAPE]]:
            at = placed[place] - header
            digits = data[at + _NAME_TO_SIZE : at + _BEHIND_SIZE]
            if not data.startswith(key + name, at) or digits != b"%011o" % placed[place + 1]:
                content = data[placed[START] - base : placed[END] - base]
                return _cut_alone(cutter, placed, content, number)
        return maker(placed, number, data, base)

    return checked


def _places(shape: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each part of a shape, and the index of its offset in a `PlacedSample`."""
    return zip(shape, count(PLACES, 2), strict=False)


def _cut_alone(
    cutter: SampleCutter, placed: PlacedSample, data: bytes, number: int
) -> dict[str, Any]:
    path, start = cutter.identity.path, placed[START]
    try:
        sample = cutter.cut_one(data, start, number)
    except UncommonTarError as error:
        raise IndexOutdatedError(path, str(error)) from error
    if sample["__key__"] != placed[KEY]:
        raise IndexOutdatedError(path, f"there is no sample at byte {start:,}")
    return sample


def _trusting_maker(identity: ShardIdentity, shapes: Sequence[Sequence[str]]) -> Maker:
    """Return a function that does not check. Templates are copied: faster than adding keys."""
    dataset, shard, copy_subflavors = identity.dataset, identity.shard, identity.copy_subflavors
    templates = [_template(identity, shape) for shape in shapes]
    of_sources = dict(SourceInfo.of(dataset, 0, shard, []))

    def maker(placed: PlacedSample, number: int, data: bytes, base: int) -> dict[str, Any]:
        key = placed[KEY]
        copied, parts = templates[placed[SHAPE]]
        names: list[str] = []
        source = SourceInfo(of_sources)
        source["index"] = number
        source["file_names"] = names
        sample = copied()
        sample["__key__"] = key
        sample["__restore_key__"] = [dataset, shard, key]
        sample[SOURCES] = [source]
        sample["__subflavors__"] = copy_subflavors()
        for part, suffix, place in parts:
            at = placed[place] - base
            sample[part] = data[at : at + placed[place + 1]]
            names.append(key + suffix)
        return sample

    return maker


def _template(
    identity: ShardIdentity, shape: Sequence[str]
) -> tuple[Callable[[], dict[str, Any]], list[tuple[str, str, int]]]:
    """Return a function that copies a sample to fill in, and name, suffix and place of parts."""
    wanted = identity.parts
    parts = [
        (part, f".{part}", place)
        for part, place in _places(shape)
        if wanted is None or part in wanted
    ]
    sample = dict.fromkeys(("__key__", "__restore_key__", "__shard__", SOURCES, "__subflavors__"))
    sample["__shard__"] = identity.shard
    sample |= dict.fromkeys(part for part, _, _ in parts)
    return sample.copy, parts

"""`TarStore`: the files in tar shards by name."""

import contextlib
import sqlite3
from collections.abc import Iterator
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from dagster_dataops.errors import DuplicateKeyError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.training.filestores.energon.energon_layout import (
    META,
    ShardedDataset,
    prepared_counts,
)
from dagster_dataops.training.filestores.sample_names import split_name
from dagster_dataops.training.filestores.source_info import SourceInfo
from dagster_dataops.training.filestores.store import FileStore, FileWindow
from dagster_dataops.training.filestores.tars.open_shards import MAX_KEPT, OpenShards
from dagster_dataops.training.filestores.tars.shard_scan import BY_TARFILE, ScannedShard, TarShard
from dagster_dataops.training.filestores.tars.tar_index import IndexedFile, TarIndex

_PARTS = """
    SELECT sample_index, part_name, content_byte_offset, content_byte_size FROM sample_parts
    WHERE tar_file_id = ? ORDER BY sample_index, content_byte_offset
"""
_SAMPLES = """
    SELECT sample_index, sample_key, byte_offset, byte_offset + byte_size FROM samples
    WHERE tar_file_id = ? ORDER BY sample_index
"""


def prepared_index(dataset: ShardedDataset) -> TarIndex | None:
    """Return the index of a local dataset that Energon prepared; ``None`` if it is not complete."""
    path = Path(dataset.path) / META / "index.sqlite"
    if not (path.is_file() and all(shard.location.is_plain for shard in dataset.shards)):
        return None
    numbers = {name: number for number, name in enumerate(prepared_counts(dataset))}
    if not all(shard.name in numbers for shard in dataset.shards):
        return None
    return TarIndex(
        dataset.path,
        dataset.shards,
        scanner=partial(_placed, path.absolute(), numbers, dataset.path),
        written=path.stat().st_ctime_ns,
    )


def _placed(path: Path, numbers: dict[str, int], dataset: str, shard: TarShard) -> ScannedShard:
    """Return the samples of a shard by their entries in ``index.sqlite``."""
    shapes: dict[tuple[str, ...], int] = {}
    number = (numbers[shard.name],)
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as file:
        samples = {at: [*values, 0] for at, *values in file.execute(_SAMPLES, number)}
        for at, parts in groupby(file.execute(_PARTS, number), itemgetter(0)):
            sample, names = samples[at], []
            for _, name, *place in parts:
                if name in names:
                    raise DuplicateKeyError(dataset, f"{sample[0]}.{name}", shard.name, shard.name)
                names.append(name)
                sample += place
            sample[3] = shapes.setdefault(tuple(names), len(shapes))
    return ScannedShard(list(samples.values()), [list(shape) for shape in shapes], [])


class TarStore(FileStore):
    """The files in the shards of a dataset by name, such as ``000007.txt``.

    Args:
        dataset: The dataset, with the shards of all its splits.
        duplicates: ``error``, or which of two samples with one key to use: ``first`` or ``last``.
    """

    def __init__(self, dataset: ShardedDataset, duplicates: str = "error") -> None:
        self.path = dataset.path
        self.dataset = dataset
        self.duplicates = duplicates
        self._shards = OpenShards()

    @override
    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name not in {"index", "_kept"}}

    @cached_property
    def index(self) -> TarIndex:
        """The index, built when it is first used unless Energon wrote one."""
        return prepared_index(self.dataset) or TarIndex(
            self.path, self.dataset.shards, self.duplicates
        )

    @cached_property
    def _kept(self) -> dict[int, Content | None]:
        """The shards that are open by number; ``None`` for those that are not the indexed files."""
        return {}

    @override
    def read(self, name: str) -> tuple[bytes, SourceInfo]:
        number, start, *place = self._place_of(name)
        shard = self.dataset.shards[number]
        content = self._kept[number] if number in self._kept else self._open(number)
        data = content.read_at(place[1], place[0]) if content else b""
        if content is None or len(data) < place[1]:
            data = self._shards.part(shard, start, name, place)
        return data, SourceInfo.of(self.path, name, shard.name, [name])

    def _place_of(self, name: str) -> IndexedFile:
        divided = split_name(name)
        file = self.index.find(*divided) if divided is not None else None
        if file is None:
            raise self.missing(name)
        return file

    @override
    def place(self, name: str) -> FileWindow | None:
        number, start, first, size = self._place_of(name)
        shard = self.dataset.shards[number]
        if size == BY_TARFILE or shard.location.compression is not None:
            return None
        self._shards.check_part(shard, start, name, first, size)
        stamp = shard.location.stamp()

        def read_at(most: int, offset: int) -> bytes:
            most = max(0, min(most, size - offset))
            return self._shards.read(shard, most, first + offset) if most else b""

        path = shard.location.path
        return FileWindow(size, read_at, path, first, lambda: shard.location.stamp() == stamp)

    def _open(self, number: int) -> Content | None:
        """Open a shard that stays open; ``None`` if each read must check it or open it again."""
        shard, content = self.dataset.shards[number], None
        if len(self.dataset.shards) <= MAX_KEPT and self.index.is_common(number):
            content = self._shards.kept(shard)
            if not self.index.is_current(shard):  # asked when it is open
                content = None
        self._kept[number] = content
        return content

    @override
    def unread(self) -> str:
        path, fault = next(iter(self.index.facts.errors.values()), ("", ""))
        return f"{path}: {fault}" if path else ""

    @override
    def names(self) -> Iterator[str]:
        return self.index.names()

    @override
    def __len__(self) -> int:
        return self.index.facts.files

    @override
    def version(self) -> str:
        return self.index.version

    @override
    def __contains__(self, name: object) -> bool:
        divided = split_name(name) if isinstance(name, str) else None
        return divided is not None and self.index.find(*divided) is not None

    @override
    def close(self) -> None:
        self._kept.clear()
        self._shards.close()

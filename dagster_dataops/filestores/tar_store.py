"""`TarStore`: the files in tar shards by name."""

from collections.abc import Iterator
from functools import cached_property

from typing_extensions import override

from dagster_dataops.filestores.confinement import confined
from dagster_dataops.filestores.energon_layout import ShardedDataset
from dagster_dataops.filestores.prepared_index import prepared_index
from dagster_dataops.filestores.sample_names import split_name
from dagster_dataops.filestores.source_info import SourceInfo
from dagster_dataops.filestores.store import FileStore
from dagster_dataops.filestores.tars.open_shards import OpenShards
from dagster_dataops.filestores.tars.tar_index import TarIndex


class TarStore(FileStore):
    """The files in the shards of a dataset by name, such as ``000007.txt``.

    Args:
        dataset: The dataset, with the shards of all its splits.
        duplicates: ``error``, or which of two samples with one key to use: ``first`` or ``last``.
    """

    def __init__(self, dataset: ShardedDataset, duplicates: str = "error") -> None:
        self.path = dataset.path
        self.dataset = dataset
        self._duplicates = duplicates
        self._shards = OpenShards()

    @override
    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "index"}

    @cached_property
    def index(self) -> TarIndex:
        """The index, built when it is first used unless Energon wrote one."""
        return prepared_index(self.dataset) or TarIndex(
            self.path, self.dataset.shards, self._duplicates
        )

    @override
    def read(self, name: str) -> tuple[bytes, SourceInfo]:
        divided = split_name(name)
        found = self.index.find(divided[0]) if divided is not None else None
        if divided is None or found is None or divided[1] not in found[2]:
            confined(name, self.shown)
            raise self.missing(name)
        shard, at, parts = found
        data = self._shards.part(shard, at, name, parts[divided[1]])
        place = {
            "dataset_path": self.path,
            "index": name,
            "shard_name": shard.name,
            "file_names": [name],
        }
        return data, SourceInfo(place)

    @override
    def names(self) -> Iterator[str]:
        return self.index.names()

    @override
    def __len__(self) -> int:
        return self.index.count_files()

    @override
    def version(self) -> str:
        return self.index.version

    @override
    def __contains__(self, name: object) -> bool:
        divided = split_name(name) if isinstance(name, str) else None
        found = self.index.find(divided[0]) if divided else None
        return divided is not None and found is not None and divided[1] in found[2]

    @override
    def close(self) -> None:
        self._shards.close()

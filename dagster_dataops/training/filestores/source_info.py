"""`SourceInfo`: where a part of a record was read."""

from collections.abc import MutableMapping
from typing import Any

from dagster_dataops.foundation.override import override
from dagster_dataops.records import SOURCES


class SourceInfo(dict[str, Any]):
    """The place that a sample or a file was read from: a dict whose keys are also attributes.

    Attributes:
        dataset_path: The path or URL of the dataset or file store.
        index: The number of a sample in its dataset, counted from 0, or the name of a file.
        shard_name: The shard, relative to the dataset; of a folder, the folder.
        file_names: The names of the files that were read.
    """

    __slots__ = ()
    dataset_path: str
    index: int | str
    shard_name: str
    file_names: list[str]

    def __getattr__(self, name: str) -> Any:
        """Return the value of a key."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    @override
    def __reduce__(self) -> Any:
        return SourceInfo, (dict(self),)

    @classmethod
    def of(cls, dataset_path: str, index: int | str, shard: str, files: list[str]) -> "SourceInfo":
        """Return the place of some files."""
        return cls(dataset_path=dataset_path, index=index, shard_name=shard, file_names=files)


def new_sample(
    dataset: str, shard: str, key: str, index: int, files: list[str], subflavors: dict[str, Any]
) -> dict[str, Any]:
    """Return a sample without its parts."""
    source = SourceInfo(dataset_path=dataset, index=index, shard_name=shard, file_names=files)
    return {
        "__key__": key,
        "__restore_key__": [dataset, shard, key],
        "__shard__": shard,
        SOURCES: [source],
        "__subflavors__": subflavors,
    }


def add_source_info(sample: MutableMapping[str, Any], *sources: SourceInfo) -> None:
    """Add sources to ``sample["__sources__"]``. The earlier list is not changed."""
    known = list(sample.get(SOURCES) or ())
    sample[SOURCES] = [*known, *(source for source in sources if source not in known)]

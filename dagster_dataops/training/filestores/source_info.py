"""Names of the files of samples, and `SourceInfo`: where a sample or a file was read."""

import re
from collections.abc import MutableMapping
from typing import Any, Final

from typing_extensions import override

from dagster_dataops.records import SOURCES

_META: Final = re.compile(r"__[^/]*__($|/)")
NO_PREFIX: Final[str | tuple[str, ...]] = ()
"""No name begins with it: names that begin with ``_`` must be divided one by one."""


def split_name(name: str) -> tuple[str, str] | None:
    """Return key and part of a file name, by the rules of webdataset and Energon.

    The key ends before the first dot of the last component: ``d/x.y.txt`` has the key ``d/x`` and
    the part ``y.txt``. A name belongs to no sample if its last component has no dot or begins with
    one, or if the name is ``__…__`` or is in such a folder.
    """
    if "/" not in name and not name.startswith(("_", ".")):
        key, mark, part = name.partition(".")
        return (key, part) if mark else None
    slash = name.rfind("/") + 1
    dot = name.find(".", slash)
    if dot <= slash or (name.startswith("__") and _META.match(name)):
        return None
    return name[:dot], name[dot + 1 :]


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

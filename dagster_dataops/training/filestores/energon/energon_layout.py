"""Find the shards of a dataset: those that Energon prepared, a folder, a pattern or files."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dagster_dataops.errors import InputError, StreamDefinitionError, StreamSourceError
from dagster_dataops.foundation.places.confined_names import confined
from dagster_dataops.streams.files.decompression import PACKED_TARS
from dagster_dataops.streams.files.file_sets import FileSet
from dagster_dataops.streams.files.listing import relative_path
from dagster_dataops.streams.files.locations import Location, compression_of
from dagster_dataops.streams.files.remote import file_system, is_url, source_error
from dagster_dataops.training.filestores.energon.declared_samples import (
    OF_TYPE,
    DeclaredSamples,
    declared_samples,
    listed_parts,
)
from dagster_dataops.training.filestores.tars.shard_scan import TarShard

META: Final = ".nv-meta"
_RANGE: Final = re.compile(r"\{([^{}]*)\}")
_OWN_CONFIGURATIONS: Final = ("dataset.yaml", "crude.yaml")
_KNOWN_KEYS: Final = frozenset(
    {"__module__", "__class__", "subflavors", "part_filter", "split_config", *OF_TYPE}
)
_MAX_TEXT: Final = 64 << 20
_DATASET: Final = "dataset.yaml"
_SPLIT: Final = "split.yaml"


@dataclass(frozen=True)
class ShardedDataset:
    """The shards of a dataset, and the metadata in its files.

    Attributes:
        path: The absolute path or the URL.
        shards: The shards, in order.
        subflavors: The subflavors of the dataset.
        parts: The parts to keep; ``None`` for all.
        exclude: Names of shards, and ``shard/key`` of samples, to leave out.
        storage_options: The arguments of fsspec's file systems.
        declared: How the samples are made; ``None`` for a crude dataset.
    """

    path: str
    shards: tuple[TarShard, ...]
    subflavors: Mapping[str, Any] = field(default_factory=dict)
    parts: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    declared: DeclaredSamples | None = None


def joined(folder: str, name: str) -> str:
    """Return the path or URL of a file in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def exists(path: str, options: Mapping[str, Any]) -> bool:
    """Return whether a file or folder exists."""
    if not is_url(path):
        return Path(path).exists()
    system, inner = file_system(path, options)
    try:
        return bool(system.exists(inner))
    except Exception as error:
        raise source_error(path, error) from error


def read_text(path: str, options: Mapping[str, Any]) -> str:
    """Return the text of a small file."""
    with Location(path, None, options).opened() as content:
        data = content.read_all(_MAX_TEXT + 1)
    if len(data) > _MAX_TEXT:
        raise InputError(path, f"is larger than {_MAX_TEXT >> 20} MiB, the limit for such a file")
    return data.decode("utf-8-sig")


def read_yaml(path: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping in a YAML or JSON file."""
    import yaml

    try:
        document = yaml.safe_load(read_text(path, options))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(path, f"is not valid YAML: {error}") from error
    if not isinstance(document, dict):
        raise InputError(path, f"must be a mapping, not a {type(document).__name__}")
    return document


def is_prepared(path: str, options: Mapping[str, Any]) -> bool:
    """Return whether a folder has the files that ``energon prepare`` writes."""
    return exists(joined(path, META), options)


def prepared_dataset(
    path: str,
    split: str | None,
    options: Mapping[str, Any],
    *,
    dataset_config: str = _DATASET,
    split_config: str | None = None,
) -> ShardedDataset:
    """Return a dataset that Energon prepared.

    Args:
        path: The folder.
        split: The part of the split; ``None`` for all shards.
        options: The arguments of fsspec's file system.
        dataset_config: The file with class and subflavors.
        split_config: The file with the split; ``None`` for that which ``dataset_config`` names, or
            ``split.yaml``.

    Raises:
        InputError: A file is missing or invalid.
        StreamDefinitionError: There is no such part of the split.
        PathEscapeError: The name of a shard, or of the file of the split, leads out of its folder.
    """
    meta = joined(path, META)
    _check_there(meta, dataset_config, _DATASET, options)
    configuration = _configuration(joined(meta, dataset_config), options)
    split_config = split_config or configuration.split_config or _SPLIT
    _check_there(meta, split_config, _SPLIT, options)
    divided = _split(meta, split_config, options)
    parts = None if split is None else divided.get("split_parts")
    if parts is None:
        names = list(_shard_counts(meta, options)) or _listed_names(path, options)
    elif split not in parts:
        known = ", ".join(map(str, parts)) or "none"
        reason = f"{path} has no split part {split!r}; its split parts: {known}"
        raise StreamDefinitionError("crude", reason)
    else:
        names = [expansion for name in parts[split] or () for expansion in expanded(str(name))]
    exclude = frozenset(
        expansion for name in divided.get("exclude") or () for expansion in expanded(str(name))
    )
    shards = tuple(_shard(path, name, options) for name in names if name not in exclude)
    return ShardedDataset(
        path,
        shards,
        configuration.subflavors,
        configuration.parts,
        exclude,
        options,
        configuration.declared,
    )


def _check_there(meta: str, name: str, usual: str, options: Mapping[str, Any]) -> None:
    """Check that a file with an unusual name exists."""
    if name != usual and not exists(joined(meta, name), options):
        raise InputError(joined(meta, name), "there is no such file")


def _shard(path: str, name: str, options: Mapping[str, Any]) -> TarShard:
    """Return a shard by its name in the files of the dataset, which must not lead out of it."""
    return TarShard(name, Location(joined(path, confined(name, path)), None, options))


def _split(meta: str, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    for candidate in dict.fromkeys((name, _SPLIT, "split.json")):
        if exists(joined(meta, candidate), options):
            return read_yaml(joined(meta, candidate), options)
    return {}


def _shard_counts(meta: str, options: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of samples of each shard, in Energon's order; empty if unknown."""
    for name in (".info.json", ".info.yaml"):
        path = joined(meta, name)
        if exists(path, options):
            return dict(read_yaml(path, options).get("shard_counts") or {})
    return {}


@dataclass(frozen=True)
class _Configuration:
    """The content of ``dataset.yaml``; see `ShardedDataset`."""

    subflavors: Mapping[str, Any] = field(default_factory=dict)
    parts: frozenset[str] | None = None
    split_config: str | None = None
    declared: DeclaredSamples | None = None


def _configuration(path: str, options: Mapping[str, Any]) -> _Configuration:
    if not exists(path, options):
        return _Configuration()
    document = read_yaml(path, options)
    unknown = sorted(document.keys() - _KNOWN_KEYS)
    if unknown:
        reason = f"{unknown[0]!r} is unknown; known keys: {', '.join(sorted(_KNOWN_KEYS))}"
        raise InputError(path, reason)
    declared = declared_samples(document, path)
    kept = document.get("part_filter") if declared is None else None
    if isinstance(kept, str):
        raise InputError(path, "part_filter must be a list of parts; a function is not supported")
    parts = listed_parts(kept, path)
    named = document.get("split_config")
    split = None if named is None else confined(named, path)
    subflavors = document.get("subflavors") or {}
    if not isinstance(subflavors, Mapping):
        raise InputError(path, f"subflavors must be a mapping, not {subflavors!r}")
    kept_parts = None if parts is None else frozenset(parts)
    return _Configuration(dict(subflavors), kept_parts, split, declared)


def sharded_dataset(path: str, options: Mapping[str, Any]) -> ShardedDataset | None:
    """Return the dataset of the tar files in a folder, of a pattern or of one file.

    ``None`` if the path is a folder without tar files.
    """
    is_folder = not _is_tar(path) and not any(sign in path for sign in "*?[")
    folder = path if is_folder else _folder_of(path)
    locations = FileSet((path,), storage_options=options).locations()
    tars = [location for location in locations if _is_tar(location.path) or not is_folder]
    if not tars:
        return None
    shards = tuple(TarShard(_relative(tar.path, folder), tar) for tar in tars)
    about = _Configuration()
    for name in _OWN_CONFIGURATIONS:
        if exists(joined(folder, name), options):
            about = _configuration(joined(folder, name), options)
            if about.split_config is not None:
                reason = f"split_config has no effect without {META}; prepare_energon() makes it"
                raise InputError(joined(folder, name), reason)
            break
    return ShardedDataset(
        folder, shards, about.subflavors, about.parts, frozenset(), options, about.declared
    )


def _is_tar(path: str) -> bool:
    """Return whether a path is that of a tar archive by its name, which may be compressed."""
    packed = compression_of(path)
    plain = path if packed is None else path.rpartition(".")[0]
    return plain.endswith(".tar") or (packed is not None and path.endswith(PACKED_TARS))


def _folder_of(path: str) -> str:
    head = re.split(r"[*?\[]", path)[0]
    return head.rpartition("/")[0] or "."


def _relative(path: str, folder: str) -> str:
    return relative_path(path, folder) if path.startswith(folder) else path.rpartition("/")[2]


def _listed_names(path: str, options: Mapping[str, Any]) -> list[str]:
    try:
        locations = FileSet((path,), None, options).locations()
    except StreamSourceError:
        return []
    return [
        _relative(location.path, path) for location in locations if location.path.endswith(".tar")
    ]


def expanded(name: str) -> Iterator[str]:
    """Yield the names of a text with braces, such as ``data-{000..009}.tar`` or ``{a,b}.tar``."""
    match = _RANGE.search(name)
    if match is None:
        yield name
        return
    ends = match[1].split("..")
    if len(ends) == 2 and all(end.isdigit() for end in ends):
        width = len(ends[0]) if ends[0].startswith("0") or len(ends[0]) == len(ends[1]) else 0
        options = [f"{number:0{width}d}" for number in range(int(ends[0]), int(ends[1]) + 1)]
    else:
        options = match[1].split(",")
    for option in options:
        yield from expanded(f"{name[: match.start()]}{option}{name[match.end() :]}")


def with_all_shards(dataset: ShardedDataset) -> ShardedDataset:
    """Return a dataset with the shards of all splits if Energon prepared it."""
    path, options = dataset.path, dataset.storage_options
    names = {shard.name for shard in dataset.shards}
    others = [name for name in prepared_counts(dataset) if name not in names]
    added = (_shard(path, name, options) for name in others)
    return replace(dataset, shards=(*dataset.shards, *added))


def prepared_counts(dataset: ShardedDataset) -> dict[str, int]:
    """Return the number of samples of each shard that Energon wrote down; empty without."""
    return _shard_counts(joined(dataset.path, META), dataset.storage_options)

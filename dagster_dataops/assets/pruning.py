"""prune: folders below a root that belong to no asset or partition of some definitions."""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from dagster_dataops.assets.loaded_definitions import loaded_definitions
from dagster_dataops.assets.runtime.asset_paths import folder_of, safe_part
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.places.result_trees import ResultTree, tree_of
from dagster_dataops.checkpoints.publish.other_versions import check_format
from dagster_dataops.configuration import config, root_setting
from dagster_dataops.datasets.file_values.unnamed_files import files_below
from dagster_dataops.datasets.published_files import PARTITIONS
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.places.url_forms import is_url
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.pipelines.view.static_report import FILE_NAME


@dataclass(frozen=True, slots=True)
class UnusedFolder:
    """A folder of a result that belongs to no asset or partition."""

    path: Path
    size_bytes: int


@dataclass(slots=True)
class _Known:
    """The folders of the assets below a root.

    Attributes:
        partitions: The names of the partitions' folders, by the folder of an asset, or of the node
            whose results are below it.
    """

    partitions: dict[Path, set[str]] = field(default_factory=dict)

    def add(self, root: Path, key: dg.AssetKey, partitions: Collection[str]) -> None:
        """Add the folder of an asset, and those above it."""
        folder = folder_of(Root(root), key.path).path
        for each in (folder, *folder.parents):
            if each == root:
                break
            self.partitions.setdefault(each, set()).update(map(safe_part, partitions))


def prune(
    root: str,
    modules: Sequence[str] = (),
    files: Sequence[str] = (),
    *,
    delete: bool = False,
) -> tuple[list[UnusedFolder], str]:
    """Return the unused folders below a root, with a text that lists them.

    A folder is listed only if this package wrote results or checkpoints to it. Other folders and
    files are left alone, and so is what lies in the folder of a known asset.

    Args:
        root: Folder of all results, or the URL of an object store.
        modules: Modules with the definitions of all code locations that use the root.
        files: Python files with such definitions.
        delete: Delete the folders; by default nothing is deleted.

    Raises:
        ConfigurationError: The root is not a folder, a module has no definitions, they have no
            assets, or no asset has a folder below the root.
        NewerVersionError: A newer version has written to an unused folder.
        FolderLockedError: A run works in a folder that is to be deleted.
        StorageError: The store refuses.
    """
    place = _root(root)
    known = _known(place.path, loaded_definitions(modules, files))
    tree = tree_of(place)
    if not any(map(tree.exists, known.partitions)):
        raise ConfigurationError("ROOT", root, "the root of these definitions: no asset is there")
    unused = [UnusedFolder(path, tree.size(path)) for path in _unused(place.path, known, tree)]
    for folder in unused:  # a newer version may name the folders of assets by other rules
        for data, file in files_below(place.at(folder.path)).formatted():
            check_format(data, file)
    if delete:
        for folder in unused:
            tree.delete(folder.path)
        if place.bucket is None:
            _remove_empty(place.path, known, [folder.path for folder in unused])
    return unused, _text(place, unused, deleted=delete)


def _root(root: str) -> Root:
    place = root_setting("ROOT", root, config.storage_options)
    if place.bucket is None and (is_url(root) or not place.path.is_dir()):
        raise ConfigurationError("ROOT", root, "a folder that exists, or a URL of an object store")
    return place


def _known(root: Path, loaded: Sequence[dg.Definitions]) -> _Known:
    known = _Known()
    for definitions in loaded:
        graph = definitions.resolve_asset_graph()
        for key in graph.get_all_asset_keys():
            known.add(root, key, _partitions_of(graph.get(key).to_asset_spec()))
    if not known.partitions:
        raise ConfigurationError("definitions", len(loaded), "with assets, given by -m or -f")
    return known


def _partitions_of(spec: dg.AssetSpec) -> Collection[str]:
    """Return the keys of the partitions of an asset; the instance knows dynamic ones."""
    definition = spec.partitions_def
    if definition is None:
        return ()
    if not _is_dynamic(definition):
        return definition.get_partition_keys()
    if not os.environ.get("DAGSTER_HOME"):
        allowed = f"set: the instance knows the partitions of {spec.key.to_user_string()}"
        raise ConfigurationError("DAGSTER_HOME", "", allowed)
    with dg.DagsterInstance.get() as instance:
        return definition.get_partition_keys(dynamic_partitions_store=instance)


def _is_dynamic(definition: dg.PartitionsDefinition) -> bool:
    if isinstance(definition, dg.MultiPartitionsDefinition):
        return any(
            _is_dynamic(dimension.partitions_def) for dimension in definition.partitions_defs
        )
    return isinstance(definition, dg.DynamicPartitionsDefinition)


def _unused(folder: Path, known: _Known, tree: ResultTree) -> Iterator[Path]:
    """Yield the topmost folders of results that are not known, in order."""
    reserved = _reserved(folder)
    for inner in tree.folders(folder):
        if inner.name == PARTITIONS and folder in known.partitions:
            names = known.partitions[folder]
            yield from (path for path in tree.folders(inner) if path.name not in names)
        elif inner in reserved:
            continue
        elif inner not in known.partitions and _is_ours(inner, tree):
            yield inner
        else:
            yield from _unused(inner, known, tree)


def _reserved(folder: Path) -> set[Path]:
    """Return the folders that a result has in its own folder."""
    place = NodeFolder(folder, folder.name)
    return {place.checkpoints, place.artefact, place.parts}


def _is_ours(folder: Path, tree: ResultTree) -> bool:
    """Return whether this package wrote a result, an unfinished run or a report to a folder."""
    place = NodeFolder(folder, folder.name)
    named = (place.result, place.manifest, place.artefact, place.parts, place.errors)
    if any(map(tree.exists, (*named, place.checkpoints))) or tree.is_begun(folder):
        return True
    in_partitions = (NodeFolder(path, folder.name) for path in tree.folders(folder / PARTITIONS))
    return tree.exists(folder / FILE_NAME) or any(
        any(map(tree.exists, (place.manifest, place.result, place.checkpoints)))
        or tree.is_begun(place.path)
        for place in in_partitions
    )


def _remove_empty(root: Path, known: _Known, deleted: Sequence[Path]) -> None:
    for path in deleted:
        for parent in path.parents:
            if parent == root or parent in known.partitions:
                break
            if parent.exists():
                if any(parent.iterdir()):
                    break
                parent.rmdir()


def _text(root: Root, folders: Sequence[UnusedFolder], *, deleted: bool) -> str:
    lines = [
        f"{folder.size_bytes:>16,}  {folder.path.relative_to(root.path)}" for folder in folders
    ]
    total = f"{sum(folder.size_bytes for folder in folders):,} bytes"
    said = f"{counted(len(folders), 'folders')} of no asset or partition below {root}, {total}"
    end = "deleted" if deleted else "nothing is deleted without --yes"
    return "\n".join([*lines, f"{said}: {end}" if folders else said])

"""prune: folders below a root that belong to no asset or partition of some definitions."""

import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import dagster as dg

from dagster_dataops.assets.loaded_definitions import loaded_definitions
from dagster_dataops.assets.runtime.asset_paths import PARTITIONS, folder_of, safe_part
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.folder_lock import FolderLock
from dagster_dataops.configuration import folder_at
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.places.url_forms import folder_setting, is_url
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.pipelines.view.static_report import FILE_NAME

_LOCK_SECONDS: Final = 0.0  # a run that works in a folder keeps it


@dataclass(frozen=True, slots=True)
class UnusedFolder:
    """A folder of a result that belongs to no asset or partition.

    Attributes:
        path: The folder.
        size_bytes: The space of the files in it.
    """

    path: Path
    size_bytes: int

    def delete(self) -> None:
        """Delete the folder, and folders above it that are then empty.

        Raises:
            FolderLockedError: A run works in it.
        """
        locks = [FolderLock(lock.parent, "prune", _LOCK_SECONDS) for lock in _locks(self.path)]
        try:
            shutil.rmtree(self.path)
        finally:
            for lock in locks:
                lock.release()


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
        root: Folder of all results, on this machine.
        modules: Modules with the definitions of all code locations that use the root.
        files: Python files with such definitions.
        delete: Delete the folders; by default nothing is deleted.

    Raises:
        ConfigurationError: The root is not a folder, a module has no definitions, they have no
            assets, or no asset has a folder below the root.
    """
    place = _root(root)
    known = _known(place, loaded_definitions(modules, files))
    if not any(folder.exists() for folder in known.partitions):
        raise ConfigurationError("ROOT", root, "the root of these definitions: no asset is there")
    found = [UnusedFolder(path, _size(path)) for path in _unused(place, known)]
    if delete:
        for folder in found:
            folder.delete()
        _remove_empty(place, known, [folder.path for folder in found])
    return found, _text(place, found, deleted=delete)


def _root(root: str) -> Path:
    place = None if is_url(root) else folder_setting("ROOT", root)
    if place is None or folder_at(place).bucket or not place.is_dir():
        raise ConfigurationError("ROOT", root, "a folder of this machine that exists")
    return place.absolute()


def _known(root: Path, found: Sequence[dg.Definitions]) -> _Known:
    known = _Known()
    for definitions in found:
        graph = definitions.resolve_asset_graph()
        for key in graph.get_all_asset_keys():
            known.add(root, key, _partitions_of(graph.get(key).to_asset_spec()))
    if not known.partitions:
        raise ConfigurationError("definitions", len(found), "with assets, given by -m or -f")
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
        return any(_is_dynamic(one.partitions_def) for one in definition.partitions_defs)
    return isinstance(definition, dg.DynamicPartitionsDefinition)


def _unused(folder: Path, known: _Known) -> Iterator[Path]:
    """Yield the topmost folders of results that are not known, in order."""
    reserved = _reserved(folder)
    for inner in sorted(folder.iterdir()):
        if not inner.is_dir() or inner.is_symlink() or inner.name.startswith("."):
            continue
        if inner.name == PARTITIONS and folder in known.partitions:
            names = known.partitions[folder]
            yield from (one for one in sorted(inner.iterdir()) if _is_unknown(one, names))
        elif inner in reserved:
            continue
        elif inner not in known.partitions and _is_ours(inner):
            yield inner
        else:
            yield from _unused(inner, known)


def _is_unknown(partition: Path, names: Collection[str]) -> bool:
    return partition.name not in names and partition.is_dir() and not partition.is_symlink()


def _reserved(folder: Path) -> set[Path]:
    """Return the folders that a result has in its own folder."""
    place = NodeFolder(folder, folder.name)
    return {place.checkpoints, place.artefact, place.parts}


def _is_ours(folder: Path) -> bool:
    """Return whether this package wrote a result, an unfinished run or a report to a folder."""
    place = NodeFolder(folder, folder.name)
    named = (place.result, place.manifest, place.artefact, place.parts, place.errors)
    if any(one.exists() for one in (*named, place.checkpoints)):
        return True
    partitions = folder / PARTITIONS
    inner = sorted(partitions.iterdir()) if partitions.is_dir() else []
    in_partitions = (NodeFolder(one, folder.name) for one in inner)
    return (folder / FILE_NAME).exists() or any(
        one.manifest.exists() or one.result.exists() or one.checkpoints.exists()
        for one in in_partitions
    )


def _locks(folder: Path) -> list[Path]:
    return sorted(folder.rglob(".lock"))


def _size(folder: Path) -> int:
    """Return the space that the files of a folder take on the disk, in bytes."""
    files = (one.lstat() for one in folder.rglob("*") if not one.is_dir() or one.is_symlink())
    return sum(status.st_blocks * 512 for status in files)


def _remove_empty(root: Path, known: _Known, deleted: Sequence[Path]) -> None:
    for path in deleted:
        for parent in path.parents:
            if parent == root or parent in known.partitions:
                break
            if parent.exists():
                if any(parent.iterdir()):
                    break
                parent.rmdir()


def _text(root: Path, found: Sequence[UnusedFolder], *, deleted: bool) -> str:
    lines = [f"{one.size_bytes:>16,}  {one.path.relative_to(root)}" for one in found]
    total = f"{sum(one.size_bytes for one in found):,} bytes"
    said = f"{counted(len(found), 'folders')} of no asset or partition below {root}, {total}"
    end = "deleted" if deleted else "nothing is deleted without --yes"
    return "\n".join([*lines, f"{said}: {end}" if found else said])

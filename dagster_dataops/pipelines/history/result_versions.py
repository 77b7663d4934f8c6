"""`versions` and `restore`: list the versions of a result, and publish an earlier one again."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.publish.other_versions import refuse_newer
from dagster_dataops.checkpoints.versions.keeping import remove_beyond
from dagster_dataops.checkpoints.versions.node_versions import version_named, versions_at
from dagster_dataops.checkpoints.versions.version import CURRENT, ResultVersion
from dagster_dataops.configuration import folder_at
from dagster_dataops.datasets.published_files import PARTITIONS, manifest_of
from dagster_dataops.errors import ResultMissingError
from dagster_dataops.foundation.concurrency.background import deleting
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.pipelines.history.node_folder import node_at

_LOCK_SECONDS: Final = 3.0


def versions(folder: str | os.PathLike[str]) -> list[ResultVersion]:
    """Return the versions of a result: those that were kept, the oldest first, and the present one.

    Args:
        folder: The folder of the node, or of one of its partitions or results.

    Raises:
        ResultMissingError: The folder has no result.
    """
    node = node_at(folder)
    kept = []
    for number in versions_at(node).numbers():
        try:
            kept.append(version_named(node, str(number)))
        except ResultMissingError:  # removed meanwhile, or damaged
            continue
    return [*kept, version_named(node, CURRENT)]


@dataclass(frozen=True)
class ReadingNode:
    """A node that reads a result that was restored.

    Attributes:
        name: Its name.
        path: Its folder.
        current: Whether its result was made from the restored content.
    """

    name: str
    path: Path
    current: bool

    @override
    def __str__(self) -> str:
        if self.current:
            return f"{self.name}: its result was made from this version; nothing is to be done"
        return (
            f"{self.name}: its result was made from another version; its next run reads this one "
            "and makes its result anew"
        )


@dataclass(frozen=True)
class Restored:
    """An earlier result that was published again.

    Attributes:
        version: The version, as it was kept.
        kept_as: The number under which the result before it is kept; empty if the restored result
            is equal to it, or if it was edited.
        readers: The nodes below ``searched`` that read the result.
        searched: The folder, or URL, below which they were searched.
    """

    version: ResultVersion
    kept_as: str
    readers: tuple[ReadingNode, ...]
    searched: str

    @override
    def __str__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        manifest = self.version.manifest
        records = counted(manifest.rows_out, "records")
        yield f"version {self.version.name} of run {manifest.run} is published again: {records}"
        if self.kept_as:
            yield f"the result that it replaced is kept as version {self.kept_as}"
        yield (
            "the next run of this node replaces it: with the present options and code, and the "
            "present input"
        )
        if not self.readers:
            yield f"no node below {self.searched} reads it"
        yield from map(str, self.readers)


def restore(
    folder: str | os.PathLike[str],
    version: str | int,
    root: str | os.PathLike[str] | None = None,
) -> Restored:
    """Publish an earlier version of a result again, as a run publishes its result.

    The result that it replaces is kept as the newest version. Other nodes are not run.

    Args:
        folder: The folder of the node, or of one of its partitions or results.
        version: The number of the version.
        root: The folder with the nodes that may read the result, to tell what they will do, as a
            path or a URL; by default the folder of the pipeline, which is the one above that of the
            node.

    Raises:
        VersionMissingError: There is no such version, or its files were changed.
        RestoreRefusedError: An unfinished run would lose its settled records.
        FolderLockedError: A run is at work in the folder.
        NewerVersionError: The node, or one that may read it, was made by a newer version.
        StorageError: The disk or the store refuses. The published result stays.
    """
    from dagster_dataops.checkpoints.publish.restored import publish_version

    node = node_at(folder)
    chosen = version_named(node, str(version))
    before = versions_at(node).numbers()
    searched = node.root.at(_pipeline_of(node)) if root is None else folder_at(root)
    readers = tuple(_readers(node, chosen, searched))  # may find a newer version
    publish_version(node, chosen.name, f"restore-{os.getpid()}", _LOCK_SECONDS)
    added = [number for number in versions_at(node).numbers() if number not in before]
    kept_as = str(added[-1]) if added else ""
    return Restored(chosen, kept_as, readers, str(searched))


def keep_only(folder: str | os.PathLike[str], most: int) -> list[int]:
    """Remove the oldest versions of a result, so that ``most`` are left; return their numbers.

    Raises:
        FolderLockedError: A run is at work in the folder.
        NewerVersionError: A newer version has written a version of the result, or the node.
    """
    node = node_at(folder)
    claim = node.place.claim(f"versions-{os.getpid()}", _LOCK_SECONDS)
    try:
        refuse_newer(node, keeps=True)
        removed = remove_beyond(node, most)
        deleting.finish()  # so that `prune-files` does not find what they name
        return removed
    finally:
        claim.release()


def _pipeline_of(node: NodeFolder) -> Path:
    """Return the folder of the pipeline of a node, or of one of its partitions."""
    above = node.path.parent
    return above.parent.parent if above.name == PARTITIONS else above


def _readers(node: NodeFolder, version: ResultVersion, root: Root) -> Iterator[ReadingNode]:
    """Yield the nodes below a root that read a result of a node."""
    from dagster_dataops.foundation.parts import function_of_part

    contents = {
        place.manifest: part.fingerprint for place, part in version.manifest.parts(node).values()
    }
    for published in function_of_part("published_nodes")([root]):
        if published.error is not None:
            raise published.error
        read = [
            (place, digest) for place, digest in _inputs(published.manifest) if place in contents
        ]
        if read and published.folder.path != node.path:
            current = all(digest == contents[place] for place, digest in read)
            yield ReadingNode(published.name, published.folder.path, current)


def _inputs(manifest: Manifest | None) -> list[tuple[Path, object]]:
    """Return path and digest of each input; the path is that of its manifest, in any form."""
    inputs = [] if manifest is None else manifest.inputs
    return [
        (manifest_of(Path(str(source.get("path")))), source.get("fingerprint")) for source in inputs
    ]

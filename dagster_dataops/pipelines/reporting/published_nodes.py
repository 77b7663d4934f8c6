"""Published nodes: the results below some folders, each after those that it was made from."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from dagster_dataops.checkpoints.checkpoint import existing
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.places.placement import place_of
from dagster_dataops.datasets.artefact import SUFFIX
from dagster_dataops.datasets.published_files import CHECKPOINTS, MANIFEST, PARTITIONS, manifest_of
from dagster_dataops.datasets.remote_input import input_location
from dagster_dataops.errors import DataOpsError, NewerVersionError, StorageError
from dagster_dataops.foundation.places.bucket import Location, StoreBucket
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.foundation.quantities import counted

MOST_NODES: Final = 1000


@dataclass(frozen=True)
class PublishedNode:
    """A node, or one partition of it.

    Attributes:
        name: Name of the node, with the partition.
        folder: Its folder.
        manifest: Its manifest; ``None`` if nothing is published.
        state: Why nothing is published, or what goes on beside the result; may be empty.
        error: Why the manifest cannot be read, if it is there.
    """

    name: str
    folder: NodeFolder
    manifest: Manifest | None
    state: str = ""
    error: NewerVersionError | StorageError | None = None

    @property
    def results(self) -> list[Path]:
        """The results."""
        if self.manifest is None:
            return []
        return [place.result for place, _ in self.manifest.parts(self.folder).values()]

    @property
    def inputs(self) -> list[Location]:
        """The inputs, in order."""
        return (
            []
            if self.manifest is None
            else [input_location(source) for source in self.manifest.inputs]
        )


def key_of_result(location: Location) -> Location:
    """Return what stands for a result whatever its form, which may change: its manifest."""
    return manifest_of(location) if isinstance(location, Path) else location


def published_nodes(places: Iterable[Root]) -> list[PublishedNode]:
    """Return the first thousand nodes in or below folders, also with an unreadable manifest.

    Of a bucket, manifests and small results are copied to this machine first.

    Raises:
        StorageError: The store cannot be read.
    """
    places = list(places)
    for place in places:
        _refresh(place)
    every = [node for place in places for node in _in(place)]
    unique = {node.folder.path: node for node in reversed(every)}
    return _in_order(list(islice(reversed(unique.values()), MOST_NODES)))


def _in(place: Root) -> list[PublishedNode]:
    """Return the nodes in a folder; a node without a result if it has none."""
    nodes = list(_walked(place))
    if nodes or not place.path.parent.exists():
        return nodes
    return [PublishedNode(place.path.name, NodeFolder.of(place), None, "not run")]


def _walked(place: Root) -> Iterator[PublishedNode]:
    for where, folders, files in os.walk(place.path):
        path, folder = Path(where), Root(Path(where), place.bucket)
        names = [name.removesuffix(MANIFEST) for name in sorted(files) if name.endswith(MANIFEST)]
        unfinished = _unfinished(path) if CHECKPOINTS in folders else ""
        for name in names:
            node = NodeFolder.of(folder, name)
            try:
                manifest = Manifest.of(node)
            except (NewerVersionError, StorageError) as error:
                shown, text = _name(place.path, path, name), str(error).rstrip(".")
                yield PublishedNode(shown, node, None, text, error)
                continue
            if manifest is not None and not manifest.part_of:
                yield PublishedNode(_name(place.path, path, name), node, manifest, unfinished)
        if unfinished and not names:
            shown = _name(place.path, path, path.name)
            yield PublishedNode(shown, NodeFolder.of(folder), None, unfinished)
        folders[:] = sorted(folder for folder in folders if not _has_no_nodes(folder))


def _refresh(place: Root) -> None:
    """Copy manifests and small results of a bucket to this machine."""
    bucket = place.bucket
    if bucket is not None:
        for folder, name in _heads(bucket, bucket.key_of(place.path)):
            place_of(place.at(folder), name).refresh(whole=False)


def _heads(bucket: StoreBucket, prefix: str) -> list[tuple[Path, str]]:
    """Return folder and name of each node below a key, read from the keys of the manifests."""
    from dagster_dataops.foundation.places.open_stores import reading

    keys = [
        key
        for key in reading(bucket).listed(prefix)
        if key.endswith(MANIFEST)
        and not any(map(_has_no_nodes, key.removeprefix(prefix).split("/")[:-1]))
    ]
    paths = [bucket.folder / key for key in sorted(keys)]
    return [(path.parent, path.name.removesuffix(MANIFEST)) for path in paths]


def _has_no_nodes(folder: str) -> bool:
    """Return whether a folder with this name holds no nodes, nor folders with nodes."""
    return folder == CHECKPOINTS or folder.startswith(".") or folder.endswith(SUFFIX)


def _name(place: Path, path: Path, name: str) -> str:
    """Return the name of a node with its partition."""
    parts = path.relative_to(place).parts
    if PARTITIONS not in parts:
        return unquote(name)
    at = parts.index(PARTITIONS)
    node = parts[at - 1] if at else place.name
    return f"{unquote(node)}, {unquote('/'.join(parts[at + 1 :]))}"


def _unfinished(path: Path) -> str:
    try:
        contents = existing(path / CHECKPOINTS)
    except (DataOpsError, OSError) as error:
        return f"its checkpoints cannot be read: {error}"
    unread = [content.format for content in contents if content.foreign]
    if unread:
        return f"unfinished, in format {unread[0]}, which this version does not read"
    records = max((content.table.records for content in contents), default=0)
    return f"unfinished, {counted(records, 'records')} settled" if contents else ""


def _in_order(nodes: Sequence[PublishedNode]) -> list[PublishedNode]:
    """Return nodes with each after those that made its inputs, otherwise in the given order."""
    makers = {key_of_result(path): node for node in nodes for path in node.results}
    makers |= {node.folder.manifest: node for node in nodes if node.error}
    ordered: dict[Path, PublishedNode] = {}
    entered: set[Path] = set()

    def visit(node: PublishedNode) -> None:
        if node.folder.path in entered:
            return
        entered.add(node.folder.path)
        for path in node.inputs:
            if (key := key_of_result(path)) in makers:
                visit(makers[key])
        ordered[node.folder.path] = node

    for node in nodes:
        visit(node)
    return list(ordered.values())

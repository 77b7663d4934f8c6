"""`ViewedRoot`: the nodes that a view shows, as they are on the disk now.

A kept version of a result is shown as a node of its own, under the key of the node and the path of
the version in its folder.
"""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.versions.node_versions import version_named
from dagster_dataops.checkpoints.versions.version import CURRENT
from dagster_dataops.configuration import config, root_setting
from dagster_dataops.datasets.published_files import HISTORY, manifest_of
from dagster_dataops.errors import ConfigurationError, ResultMissingError, VersionMissingError
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.places.root import Root
from dagster_dataops.pipelines.loaded_pipeline import pipeline_in
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.pipelines.reporting.published_nodes import PublishedNode, published_nodes
from dagster_dataops.pipelines.tracing.traced_node import TracedNode

_FRESH_SECONDS: Final = 1.0  # nodes are listed again after this time
_FRESH_IN_BUCKET: Final = 10.0
_OF_VERSION: Final = f"/{HISTORY}/"  # in a key
_KEPT: Final = "an earlier result, which was kept"


@dataclass(frozen=True)
class ViewedNode(PublishedNode):
    """A node, or one partition of it.

    Attributes:
        key: Its key in addresses: the path of its folder below the root.
    """

    key: str = ""

    @property
    def title(self) -> str:
        """The folder and the name, for titles: nodes of several pipelines may have one name."""
        key = self.key.partition(_OF_VERSION)[0]
        above = key.rpartition("/")[0] if "/partitions/" not in key else ""
        return f"{above} / {self.name}" if above else self.name

    @cached_property
    def parts(self) -> dict[str, tuple[NodeFolder, Manifest]]:
        """Folder and manifest of each result, by the name of its output; empty without a result."""
        return {} if self.manifest is None else self.manifest.parts(self.folder)

    @cached_property
    def outputs(self) -> dict[str, Location]:
        """The location of each result, by the name of its output; ``""`` for a single result."""
        return {
            output: manifest.dataset(folder).location
            for output, (folder, manifest) in self.parts.items()
        }

    @property
    def is_kept(self) -> bool:
        """Whether it is a kept version."""
        return _OF_VERSION in self.key

    def result(self, output: str) -> Location:
        """Return where a result is.

        Raises:
            ResultMissingError: There is no such output, or nothing is published.
        """
        if output in self.outputs:
            return self.outputs[output]
        if self.manifest is None:
            raise ResultMissingError(self.name, self.state or "nothing is published yet")
        known = ", ".join(self.outputs)
        raise ResultMissingError(self.name, f"it has no output {output!r}; its outputs: {known}")

    def rows(self, output: str) -> int:
        """Return the number of records of a result in its manifest; 0 without such a result."""
        return self.parts[output][1].rows_out if output in self.parts else 0

    def is_published(self, output: str) -> bool:
        """Return whether the file of a result is the published one, neither edited nor replaced."""
        if output not in self.parts:
            return False
        folder, manifest = self.parts[output]
        return folder.bucket is not None or manifest.tells_of(folder.result)

    def traced(self) -> TracedNode:
        """Return the node with its inputs, and the map between their records.

        Raises:
            ResultMissingError: Nothing is published.
        """
        if self.manifest is None:
            raise ResultMissingError(self.name, self.state or "nothing is published yet")
        return TracedNode(self.folder, self.manifest)


class ViewedRoot:
    """The nodes below some folders.

    Keys of nodes are relative to ``top``, the folder that the places are in.
    """

    def __init__(self, title: str, places: Sequence[Root], top: Root) -> None:
        self.title, self.top = title, top
        self._places = list(places)
        self._lock = threading.Lock()
        self._nodes: dict[str, ViewedNode] = {}
        self._makers: dict[str, tuple[ViewedNode, str]] = {}
        self._listed = -float("inf")

    @classmethod
    def of(cls, shown: str) -> "ViewedRoot":
        """Return the nodes of a root, or of a pipeline.

        Args:
            shown: The folder or URL of a root, of a pipeline or of a node; or ``FILE.py:NAME``, a
                Python file and the name of a pipeline in it.

        Raises:
            ConfigurationError: There is no such folder, or the file has no such pipeline.
        """
        file, colon, name = shown.rpartition(":")
        if colon and file.endswith(".py"):
            return cls.of_pipeline(pipeline_in(file, name))
        root = root_setting("ROOT", shown, config.storage_options)
        if root.bucket is None and not root.path.is_dir():
            allowed = "a folder of results that exists, a URL of an object store, or FILE.py:NAME"
            raise ConfigurationError("ROOT", shown, allowed)
        return cls(root.path.name, [root], root)

    @classmethod
    def of_pipeline(cls, of: Pipeline) -> "ViewedRoot":
        """Return the nodes of a pipeline, whose results are below the configured root."""
        top = config.results_root() / of.name
        return cls(of.name or "pipeline", [top / name for name in of.graph.nodes], top)

    def nodes(self) -> Mapping[str, ViewedNode]:
        """Return the nodes by key, each after those that made its inputs."""
        with self._lock:
            fresh = _FRESH_SECONDS if self.top.bucket is None else _FRESH_IN_BUCKET
            if time.monotonic() - self._listed > fresh:
                nodes = published_nodes(self._places)
                listed = [
                    ViewedNode(**vars(node), key=self._key(node))
                    for node in nodes
                    if node.manifest is not None or node.folder.path != self.top.path
                ]
                self._makers = _makers(listed)
                self._nodes = {node.key: node for node in listed}
                self._listed = time.monotonic()
            return self._nodes

    def node(self, key: str) -> ViewedNode | None:
        """Return a node with its present manifest; ``None`` if there is none with this key.

        Raises:
            DataOpsError: Its manifest, or that of a kept version, cannot be read.
        """
        node = self.nodes().get(key)
        if node is None and _OF_VERSION in key:
            return self._version(*key.split(_OF_VERSION, 1))
        if node is None or node.manifest is None or node.folder.bucket is not None:
            return node
        return replace(node, manifest=Manifest.of(node.folder) or node.manifest)

    def _version(self, key: str, number: str) -> ViewedNode | None:
        node = self.nodes().get(key)
        if node is None or number == CURRENT:
            return None
        try:
            version = version_named(node.folder, number)
        except VersionMissingError:
            return None
        name = f"{node.name}, version {number}"
        key = f"{key}{_OF_VERSION}{number}"
        return ViewedNode(name, version.folder, version.manifest, _KEPT, key=key)

    def output_at(self, key: str) -> tuple[ViewedNode, str] | None:
        """Return the node and the output whose folder has a path below the root."""
        path = self.top.path / key
        for node in self.nodes().values():
            for output, (folder, _) in node.parts.items():
                if folder.path == path:
                    return node, output
        return None

    def node_of_result(self, path: str) -> tuple[ViewedNode, str] | None:
        """Return the node whose result has a path or URL, and the name of its output.

        The path may be that of the result in another form.
        """
        self.nodes()  # lists them again after some time
        return self._makers.get(path) or self._makers.get(str(manifest_of(Path(path))))

    def after(self, key: str) -> list[ViewedNode]:
        """Return the last nodes after a node: those that no other node reads."""
        nodes = self.nodes()
        behind = {key}
        read: set[str] = set()
        for node in nodes.values():
            makers = [
                maker[0].key for path in node.inputs if (maker := self.node_of_result(str(path)))
            ]
            if behind.intersection(makers):
                behind.add(node.key)
                read.update(makers)
        last = behind - read - {key}
        return [nodes[name] for name in nodes if name in last]

    def _key(self, node: PublishedNode) -> str:
        path, top = node.folder.path, self.top.path
        key = os.path.relpath(path, top)
        if key == "." or key.startswith(".."):
            return node.folder.name
        return key if path.name == node.folder.name else f"{key}/{node.folder.name}"


def _makers(nodes: Sequence[ViewedNode]) -> dict[str, tuple[ViewedNode, str]]:
    """Return node and output by the location of the result, and by the path of its manifest."""
    return {
        str(location): (node, output)
        for node in reversed(nodes)  # of two nodes with one result, the first is shown
        for output, (folder, _) in node.parts.items()
        for location in (folder.manifest, node.outputs[output])
    }

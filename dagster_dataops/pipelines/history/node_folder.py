"""The folder of a node from the path that a user gives."""

import os
from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.checkpoints.places.placement import refresh_below
from dagster_dataops.configuration import folder_at
from dagster_dataops.datasets.published_files import MANIFEST, is_result, node_of
from dagster_dataops.errors import ResultMissingError
from dagster_dataops.foundation.places.root import Root


def node_at(path: str | os.PathLike[str]) -> NodeFolder:
    """Return the folder of a node, also from the folder of one of its named results.

    A large result in a bucket is not fetched.

    Raises:
        ResultMissingError: The folder has no result.
        ConfigurationError: The path is a URL.
    """
    root = folder_at(path)
    refresh_below(root, whole=False)
    place = root.path.absolute()
    if is_result(place.name):
        names = [node_of(place.name)]
        place = place.parent
    else:
        names = [path.name.removesuffix(MANIFEST) for path in sorted(place.glob(f"*{MANIFEST}"))]
    if not names:
        reason = "no result is there; for a partitioned node, give the folder of a partition"
        raise ResultMissingError(str(root.located(place)), reason)
    folder = NodeFolder.of(Root(place, root.bucket), names[0])
    manifest = Manifest.of(folder)
    if manifest is None or not manifest.part_of:
        return folder
    above = Path(os.path.normpath(place / manifest.part_of))
    return NodeFolder.of(folder.root.at(above.parent), above.name.removesuffix(MANIFEST))

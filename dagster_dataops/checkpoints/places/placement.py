"""Choose the place of a node by its folder: the only decision between folders and buckets."""

from pathlib import Path

from dagster_dataops.checkpoints.places.folder_place import FolderPlace
from dagster_dataops.checkpoints.places.node_place import NodePlace
from dagster_dataops.datasets.published_files import RESULT
from dagster_dataops.foundation.places.mounted_buckets import bucket_of


def place_of(folder: Path, name: str) -> NodePlace:
    """Return the place of a node.

    Args:
        folder: Its folder; in a working copy its files are in the bucket of that copy.
        name: Its name.
    """
    found = bucket_of(folder)
    if found is None:
        return FolderPlace(folder, name)
    from dagster_dataops.checkpoints.places.bucket_place import BucketPlace  # only for buckets

    return BucketPlace(*found, folder, name)


def place_of_file(path: Path) -> NodePlace:
    """Return the place of the node whose result has a path; a path of other files is a folder's."""
    return place_of(path.parent, path.name.removesuffix(RESULT))


def refresh_below(path: Path) -> None:
    """Make the folders of the nodes at a path hold their published files.

    Args:
        path: A folder, or a result in it.

    Raises:
        StorageError: The store cannot be read.
    """
    found = bucket_of(path)
    if found is None:
        return
    if path.name.endswith(RESULT):
        place_of_file(path).refresh()
        return
    from dagster_dataops.checkpoints.places.published_objects import PublishedObjects

    for name in PublishedObjects(*found, path, "").nodes():
        place_of(path, name).refresh()

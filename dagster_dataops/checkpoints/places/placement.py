"""Choose the place of a node: the bucket of its `Root`, or the folder if that has none."""

from pathlib import Path

from dagster_dataops.checkpoints.places.folder_place import FolderPlace
from dagster_dataops.checkpoints.places.node_place import NodePlace
from dagster_dataops.datasets.published_files import is_result, node_of
from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.places.bucket import LocalFile
from dagster_dataops.foundation.places.root import Root


def place_of(folder: Root, name: str) -> NodePlace:
    """Return the place of a node.

    Args:
        folder: Its folder; in a working copy its files are in the bucket of that copy.
        name: Its name.
    """
    if folder.bucket is None:
        return FolderPlace(folder.path, name)
    from dagster_dataops.checkpoints.places.bucket_place import BucketPlace  # only for buckets

    return BucketPlace(folder.bucket, folder.path, name)


def place_of_file(file: LocalFile) -> NodePlace:
    """Return the place of the node that a file is the result of."""
    bucket = None if isinstance(file, Path) else file.bucket
    return place_of(Root(Path(file).parent, bucket), node_of(file.name))


def make_whole(place: Root) -> dict[str, int]:
    """Write the results in a folder that are in parts of objects as one object each.

    Args:
        place: The folder of a node.

    Returns:
        For each result in the folder its size in bytes; 0 if it is not in parts.

    Raises:
        ConfigurationError: It is in no bucket.
        LostError: A run has published meanwhile.
        NewerVersionError: A newer version has published one.
        StorageError: The store cannot be reached.
    """
    if place.bucket is None:
        raise ConfigurationError("folder", str(place), "the URL of a folder of an object store")
    from dagster_dataops.checkpoints.places.published_objects import PublishedObjects

    nodes = PublishedObjects(place.bucket, place.path, "").nodes()
    return {name: PublishedObjects(place.bucket, place.path, name).make_whole() for name in nodes}


def refresh_below(place: Root, *, whole: bool = True) -> None:
    """Make the folders of the nodes at a place hold their published files.

    Args:
        place: A folder, or a result in it.
        whole: As for `NodePlace.refresh`.

    Raises:
        StorageError: The store cannot be read.
    """
    if place.bucket is None:
        return
    if is_result(place.path.name):
        place_of_file(place.located(place.path)).refresh(whole=whole)
        return
    from dagster_dataops.checkpoints.places.published_objects import PublishedObjects

    for name in PublishedObjects(place.bucket, place.path, "").nodes():
        place_of(place, name).refresh(whole=whole)

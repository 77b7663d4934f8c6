"""The files of a source, on this machine or on an object store."""

from pathlib import Path

from dagster_dataops.assets.inputs.path_pattern import PathPattern, SourceFile
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.foundation.places.bucket import BucketFile, Location
from dagster_dataops.foundation.places.object_file import object_exists


def source_file(file: SourceFile, partition: str | None, dataops: DataOpsResource) -> Location:
    """Return where the file of a source is.

    Raises:
        InputError: The key of the partition leads to another folder.
    """
    path = file.path(partition or "") if isinstance(file, PathPattern) else file
    return dataops.location(path)


def exists(location: Location) -> bool:
    """Return whether a file from `source_file` exists.

    Raises:
        InputError: The object store cannot be read.
    """
    if isinstance(location, BucketFile):
        return object_exists(location)
    return Path(location).exists()

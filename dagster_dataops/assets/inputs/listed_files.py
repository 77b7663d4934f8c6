"""The files of a pattern as partitions: those of a folder, or the objects of a bucket."""

from pathlib import Path
from typing import Final

from dagster_dataops.assets.inputs.path_pattern import key_finder, matching
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.errors import ConfigurationError, InputError, StorageError
from dagster_dataops.foundation.places.open_stores import reading
from dagster_dataops.foundation.places.url_forms import ObjectUrl, is_url

_SAMPLE: Final = "partition"


def listed_partitions(pattern: str, dataops: DataOpsResource) -> list[str]:
    """Return the keys of the partitions that have a file, in order.

    The pattern is a path or the URL of an object, such as
    ``s3://bucket/inbox/{partition}.jsonl``.

    Raises:
        ConfigurationError: The pattern has another placeholder than ``{partition}``, or is a URL of
            no object store.
        InputError: The object store cannot be read, or nothing matches.
    """
    if is_url(pattern):
        keys = _objects(pattern, dataops)
    else:
        keys = [key for key, path in matching(pattern) if path.is_file()]
    if not keys:
        raise InputError(pattern, "has no files: no partition could be made of it")
    return sorted(keys)


def _objects(pattern: str, dataops: DataOpsResource) -> list[str]:
    key_finder(pattern)  # its errors come first
    sample = dataops.location(ObjectUrl(pattern.format(partition=_SAMPLE)))
    if isinstance(sample, Path):
        raise ConfigurationError("source", pattern, "the URL of objects on an object store")
    bucket = sample.bucket
    inner = pattern.removeprefix(f"{bucket.url}/")
    folder = inner.partition("{")[0].rpartition("/")[0]
    key_of = key_finder(inner)
    try:
        keys = [key_of(name) for name in reading(bucket).names(folder)]
    except StorageError as error:
        raise InputError(pattern, f"cannot be listed: {error.reason}") from error
    return [key for key in keys if key is not None]

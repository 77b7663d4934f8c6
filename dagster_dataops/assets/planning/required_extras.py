"""check_extras: say when definitions load that a run will need a package that is not installed."""

import os

import dagster as dg

from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.datasets.exporters.packages import require
from dagster_dataops.foundation.places.url_forms import is_object_url, is_url


def check_extras(resource: DataOpsResource | None, source: object) -> None:
    """Check that the packages for the root of the results and for the source are installed.

    Raises:
        MissingExtraError: A package is missing; it names the extra.
    """
    root = None if resource is None else resource.root
    if isinstance(root, str) and not isinstance(root, dg.EnvVar) and is_url(root):
        require("obstore", "a root on an object store", "objectstore")
    if not isinstance(source, (str, os.PathLike)):
        return
    path = os.fspath(source)
    if is_object_url(path):
        require("obstore", "a source on an object store", "objectstore")
    from dagster_dataops.streams.files.locations import compression_of

    if compression_of(path) == "zstd":
        require("zstandard", "reading Zstandard files", "zstd")

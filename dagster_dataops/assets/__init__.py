"""The Dagster face: operators as assets or ops. The only package that imports Dagster."""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

# Not of the package `dagster`, but where Dagster's guide for integrations has them register.
from dagster_shared.libraries import DagsterLibraryRegistry  # noqa: TID251

with suppress(PackageNotFoundError):  # on the path alone, not installed
    DagsterLibraryRegistry.register(
        "dagster-dataops", version("dagster-dataops"), is_dagster_package=False
    )

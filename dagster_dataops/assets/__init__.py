"""Dagster integration: operators as assets or ops. The only package that imports Dagster."""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

# This module is not part of the package `dagster`, but Dagster's guide for integrations names it.
from dagster_shared.libraries import DagsterLibraryRegistry  # noqa: TID251

with suppress(PackageNotFoundError):  # not installed, only importable
    DagsterLibraryRegistry.register(
        "dagster-dataops", version("dagster-dataops"), is_dagster_package=False
    )

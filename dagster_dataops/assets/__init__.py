"""Operators as assets or ops of Dagster. The only package that imports Dagster.

`dagster_dataops.build_definitions` makes all definitions of a pipeline. The names of this package
make its assets, ops, checks and jobs one by one.
"""

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

# This module is not part of the package `dagster`, but Dagster's guide for integrations names it.
from dagster_shared.libraries import DagsterLibraryRegistry  # noqa: TID251

from dagster_dataops.foundation.exports import lazy_exports

__all__, __getattr__ = lazy_exports(__name__)  # `__init__.pyi` lists the names

with suppress(PackageNotFoundError):  # not installed, only importable
    DagsterLibraryRegistry.register(
        "dagster-dataops", version("dagster-dataops"), is_dagster_package=False
    )


def __dir__() -> list[str]:
    return __all__

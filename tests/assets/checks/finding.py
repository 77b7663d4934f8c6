"""The type of the fixture `find`."""

from collections.abc import Callable

from dagster_dataops.assets.checks.findings import Finding

Find = Callable[..., Finding]

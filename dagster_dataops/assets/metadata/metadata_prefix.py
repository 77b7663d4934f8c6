"""METADATA_PREFIX: the start of the metadata keys of this package."""

from typing import Final

METADATA_PREFIX: Final = "dagster_dataops"

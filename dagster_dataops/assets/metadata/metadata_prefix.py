"""METADATA_PREFIX: begins the keys of the metadata that this package writes."""

from typing import Final

METADATA_PREFIX: Final = "dagster_dataops"

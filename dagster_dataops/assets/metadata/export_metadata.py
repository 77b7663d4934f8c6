"""Metadata of exports: path, format, records, bytes and files."""

from typing import Any

import dagster as dg

from dagster_dataops.assets.metadata.artefact_metadata import listing_table
from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.exporters.delivery import Exported


def exported_metadata(export: Exported) -> dict[str, Any]:
    """Return path, format, records, bytes and number of files of an export."""
    return {
        f"{METADATA_PREFIX}/exported_to": dg.MetadataValue.path(export.target),
        f"{METADATA_PREFIX}/export_format": export.format,
        f"{METADATA_PREFIX}/export_rows": export.rows,
        f"{METADATA_PREFIX}/export_bytes": export.size_bytes,
        f"{METADATA_PREFIX}/export_files": len(export.files),
    }


def export_metadata(export: Exported, partition: str | None = None) -> dict[str, Any]:
    """Return the metadata of an asset that is an export: row count, size, place and listing.

    Args:
        export: The export.
        partition: The key of its partition; the row count then counts the partition only.
    """
    count = "dagster/row_count" if partition is None else "dagster/partition_row_count"
    place = {"dagster/uri": export.target.as_uri()} if partition is None else {}
    return {
        count: export.rows,
        f"{METADATA_PREFIX}/listing": dg.MetadataValue.md(listing_table(export.files)),
        **place,
        "dagster/size_bytes": export.size_bytes,
    }

"""Metadata of artefacts and exports, which are files: place, size and listing."""

from collections.abc import Sequence
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.datasets.artefact import Artefact
from dagster_dataops.exporters.delivery import Exported
from dagster_dataops.records import Record

_MAX_SHOWN: Final = 10  # files in the table


def artefact_metadata(artefact: Artefact, partition: str | None = None) -> dict[str, Any]:
    """Return number of files, size, digest, place, and a table of the first files.

    Args:
        artefact: The artefact.
        partition: The key of its partition, if the asset has partitions.
    """
    place: dict[str, Any] = (
        {"dagster/uri": artefact.path.as_uri()}
        if partition is None
        else {f"{METADATA_PREFIX}/path": dg.MetadataValue.path(artefact.path)}
    )
    return {
        f"{METADATA_PREFIX}/files": artefact.files,
        f"{METADATA_PREFIX}/digest": artefact.digest,
        f"{METADATA_PREFIX}/listing": dg.MetadataValue.md(_listing(artefact.listing())),
        **place,
        "dagster/size_bytes": artefact.size_bytes,
    }


def delivery_metadata(export: Exported) -> dict[str, Any]:
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
        f"{METADATA_PREFIX}/listing": dg.MetadataValue.md(_listing(export.files)),
        **place,
        "dagster/size_bytes": export.size_bytes,
    }


def _listing(rows: Sequence[Record]) -> str:
    """Return a Markdown table of the first files of a listing."""
    shown = [(row["path"], row["size_bytes"]) for row in rows[:_MAX_SHOWN]]
    hidden = len(rows) - len(shown)
    return table(["path", "bytes"], shown, f"and {hidden:,} more" if hidden else "")

"""Metadata of artefacts and exports, which are files: place, size and listing."""

from collections.abc import Sequence
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_keys import (
    DIGEST,
    EXPORT_BYTES,
    EXPORT_FILES,
    EXPORT_FORMAT,
    EXPORTED_TO,
    FILES,
    LISTING,
    PARTITION_ROW_COUNT,
    PATH,
    ROW_COUNT,
    SIZE_BYTES,
    URI,
)
from dagster_dataops.datasets.artefact import Artefact
from dagster_dataops.datasets.exporters.delivery import Exported
from dagster_dataops.records import Record

_MAX_SHOWN: Final = 10  # files in the table


def artefact_metadata(artefact: Artefact, partition: str | None = None) -> dict[str, Any]:
    """Return number of files, size, digest, place, and a table of the first files."""
    place: dict[str, Any] = (
        {URI: artefact.path.as_uri()}
        if partition is None
        else {PATH: dg.MetadataValue.path(artefact.path)}
    )
    return {
        FILES: artefact.files,
        DIGEST: artefact.digest,
        LISTING: dg.MetadataValue.md(_listing(artefact.listing())),
        **place,
        SIZE_BYTES: artefact.size_bytes,
    }


def delivery_metadata(export: Exported) -> dict[str, Any]:
    """Return path, format, bytes and, of several, number of files of an exported result."""
    return {
        EXPORTED_TO: dg.MetadataValue.path(export.target),
        EXPORT_FORMAT: export.format,
        EXPORT_BYTES: export.size_bytes,
        **({EXPORT_FILES: len(export.files)} if len(export.files) > 1 else {}),
    }


def export_metadata(export: Exported, partition: str | None = None) -> dict[str, Any]:
    """Return the metadata of an asset that is an export: row count, size, place and listing.

    With a ``partition``, the row count counts the partition only.
    """
    count = ROW_COUNT if partition is None else PARTITION_ROW_COUNT
    place: dict[str, Any] = (
        {URI: export.target.as_uri()}
        if partition is None
        else {EXPORTED_TO: dg.MetadataValue.path(export.target)}
    )
    return {
        count: export.rows,
        EXPORT_FORMAT: export.format,
        LISTING: dg.MetadataValue.md(_listing(export.files)),
        **place,
        SIZE_BYTES: export.size_bytes,
    }


def _listing(rows: Sequence[Record]) -> str:
    """Return a Markdown table of the first files of a listing."""
    shown = [(row["path"], row["size_bytes"]) for row in rows[:_MAX_SHOWN]]
    hidden = len(rows) - len(shown)
    return table(["path", "bytes"], shown, f"and {hidden:,} more" if hidden else "")

"""Metadata of artefacts: files, size, digest and place."""

from collections.abc import Sequence
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.datasets.artefact import Artefact
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
        f"{METADATA_PREFIX}/listing": dg.MetadataValue.md(listing_table(artefact.listing())),
        **place,
        "dagster/size_bytes": artefact.size_bytes,
    }


def listing_table(rows: Sequence[Record]) -> str:
    """Return a Markdown table of the first files of a listing."""
    shown = [(row["path"], row["size_bytes"]) for row in rows[:_MAX_SHOWN]]
    hidden = len(rows) - len(shown)
    return table(["path", "bytes"], shown, f"and {hidden:,} more" if hidden else "")

"""Metadata of artefacts: files, size, digest and place."""

from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.datasets.artefact import Artefact

_MAX_SHOWN: Final = 10  # files in the table


def artefact_metadata(artefact: Artefact, partition: str | None = None) -> dict[str, Any]:
    """Return number of files, size, digest, place, and a table of the first files.

    Args:
        artefact: The artefact.
        partition: The key of its partition, if the asset has partitions.
    """
    rows = artefact.listing()
    shown = [(row["path"], row["size_bytes"]) for row in rows[:_MAX_SHOWN]]
    hidden = len(rows) - len(shown)
    note = f"and {hidden:,} more" if hidden else ""
    place: dict[str, Any] = (
        {"dagster/uri": artefact.path.as_uri()}
        if partition is None
        else {f"{METADATA_PREFIX}/path": dg.MetadataValue.path(artefact.path)}
    )
    return {
        f"{METADATA_PREFIX}/files": artefact.files,
        f"{METADATA_PREFIX}/digest": artefact.digest,
        f"{METADATA_PREFIX}/listing": dg.MetadataValue.md(table(["path", "bytes"], shown, note)),
        **place,
        "dagster/size_bytes": artefact.size_bytes,
    }

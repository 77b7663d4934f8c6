"""Metadata of what an operator counted, and of the records that it dropped for a reason."""

from typing import Any

import dagster as dg

from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.checkpoints.folder.manifest import Manifest

_INPUT_CHARACTERS = 80


def count_metadata(manifest: Manifest) -> dict[str, Any]:
    """Return the drops by reason as a table, and each sum as a number, to be plotted.

    The keys are ``drops``, and ``counted_`` with the name that the operator gave.

    Args:
        manifest: Of the result.
    """
    metadata: dict[str, Any] = {}
    if manifest.drops:
        metadata[f"{METADATA_PREFIX}/drops"] = dg.MetadataValue.md(_drops(manifest))
    for name, number in manifest.counts.items():
        shown = round(number, 9) if isinstance(number, float) else number
        metadata[f"{METADATA_PREFIX}/counted_{name}"] = shown
    return metadata


def _drops(manifest: Manifest) -> str:
    """Return reason, records, share and first example of every reason, the most frequent first."""
    rows = [
        [reason, records, f"{records / manifest.rows_in:.1%}", _first(manifest, reason)]
        for reason, records in manifest.drops.items()
    ]
    note = "; ".join(
        f"{reason}: lines {', '.join(str(one['line']) for one in examples)}"
        for reason, examples in manifest.drop_examples.items()
    )
    return table(["reason", "records", "share", "first"], rows, f"examples in the input: {note}")


def _first(manifest: Manifest, reason: str) -> str:
    examples = manifest.drop_examples.get(reason, [])
    return examples[0]["input"][:_INPUT_CHARACTERS] if examples else ""

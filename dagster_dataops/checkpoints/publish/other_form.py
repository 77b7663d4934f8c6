"""Write a published result again in another form, such as compressed; its text stays the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import COPY_BYTES, storage
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import read_blocks


def draft_in_form(
    folder: NodeFolder, manifest: Manifest, writer: Callable[[Path], JsonlWriter]
) -> Manifest:
    """Write the drafts of published results in the form of a folder; return their manifest.

    Args:
        folder: Of the node.
        manifest: Of its results, which are in another form.
        writer: As `Claim.writer`, for a node with one result.

    Raises:
        InputError: A result has other content than the manifest tells.
        StorageError: The disk refuses.
    """
    outputs = dict(manifest.outputs)
    facts: dict[str, Any] = {}
    for name, (place, part) in manifest.parts(folder).items():
        target = place.in_form(folder.form).result
        facts = _drafted(part.dataset(place), target, JsonlWriter if name else writer)
        if name:
            outputs[name] = {**outputs[name], **facts}
    return replace(manifest, outputs=outputs) if outputs else replace(manifest, **facts)


def _drafted(
    dataset: JsonlDataset, target: Path, writer: Callable[[Path], JsonlWriter]
) -> dict[str, int]:
    """Write the draft of a result; return the facts about it that depend on its form."""
    with storage(target, "write it in another form"), writer(target) as drafted:
        with opened(dataset.location) as source:
            for block in read_blocks(source, COPY_BYTES):
                drafted.write(block, 0)
        if drafted.finish().fingerprint != dataset.fingerprint:
            reason = "has other content than its manifest tells; run the node again"
            raise InputError(str(dataset.location), reason)
        return {
            "modified_ns": drafted.modified_ns,
            "compressed_bytes": drafted.compressed_bytes,
        }

"""Metadata of the datasets that a stream mixes: wanted and realised shares."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_keys import DATASETS, LEAVES, own_key
from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.foundation.quantities import percentage

_MAX_PLOTTED: Final = 20  # datasets whose share is a number of its own


def leaf_metadata(manifest: Manifest) -> dict[str, Any]:
    """Return a table of the datasets that a stream mixed, and their shares as numbers to plot."""
    leaves = manifest.leaves
    if not leaves:
        return {}
    total = sum(leaf["samples"] for leaf in leaves)
    header = ["dataset", "wanted", "realised", "samples"]
    rows: list[list[object]] = [
        [
            leaf["name"],
            _percent(leaf["wanted"]),
            _percent(share_of(leaf, total)),
            leaf["samples"],
        ]
        for leaf in leaves
    ]
    if any(leaf["cooker"] for leaf in leaves):  # without it, the page has room for the table
        header = [*header, "cooker"]
        rows = [[*row, leaf["cooker"] or ""] for row, leaf in zip(rows, leaves, strict=True)]
    shown = {
        own_key(f"share_{leaf['name']}"): round(share_of(leaf, total), 6)
        for leaf in leaves[:_MAX_PLOTTED]
    }
    return {LEAVES: dg.MetadataValue.md(table(header, rows)), **shown}


def share_of(leaf: Mapping[str, Any], total: int) -> float:
    """Return the realised share of a dataset in ``total`` samples."""
    return float(leaf["samples"] / total) if total else 0.0


def planned_leaves(leaves: Sequence[Any]) -> dict[str, Any]:
    """Return a table of the datasets of a metadataset, for the definition of its asset."""
    if not leaves:
        return {}
    header = ["dataset", "split", "wanted", "subflavors", "stores", "cooker"]
    rows = [
        [
            leaf.name,
            leaf.split_part,
            _percent(leaf.wanted),
            ", ".join(f"{key}={value}" for key, value in leaf.subflavors.items()),
            ", ".join(leaf.aux),
            leaf.cooker or "",
        ]
        for leaf in leaves
    ]
    return {DATASETS: dg.MetadataValue.md(table(header, rows))}


def _percent(share: float | None) -> str:
    return "" if share is None else percentage(share)

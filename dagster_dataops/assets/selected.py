"""Which of a step's assets a folder belongs to."""

from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from dagster_dataops.assets.assignments import Context
from dagster_dataops.assets.places import folder_of
from dagster_dataops.checkpoints.manifest import NodeFolder


def asset_in(
    context: Context, root: Path, folder: NodeFolder
) -> tuple[dg.AssetKey, str | None] | None:
    """Return key and partition of the asset, among the step's, whose files are in ``folder``.

    Args:
        context: Of the step.
        root: The folder of all results.
        folder: Where an operator is run; one that is no asset's, such as an op's, gives ``None``.
    """
    if not isinstance(context, dg.AssetExecutionContext):
        return None
    for key in context.selected_asset_keys:
        place = folder_of(root, key.path)
        if place == folder:
            return key, None
        if place.path in folder.path.parents:
            for partition in _partitions(context):
                if folder_of(root, key.path, partition) == folder:
                    return key, partition
    return None


def _partitions(context: dg.AssetExecutionContext) -> Sequence[str]:
    partitioned = context.has_partition_key or context.has_partition_key_range
    return context.partition_keys if partitioned else ()

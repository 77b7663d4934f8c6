"""Find the asset of a step by the folder of its files."""

from collections.abc import Mapping
from typing import Final
from weakref import WeakKeyDictionary

import dagster as dg

from dagster_dataops.assets.runtime.asset_paths import folder_of, safe_part
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.published_files import PARTITIONS
from dagster_dataops.foundation.places.root import Root


def assets_in(
    context: StepContext, root: Root, folder: NodeFolder
) -> list[tuple[dg.AssetKey, str | None]]:
    """Return key and partition of each selected asset of the step whose files are in ``folder``.

    The folder of an operator with several results has their folders. No asset is in one of an
    op.
    """
    if not isinstance(context, dg.AssetExecutionContext):
        return []
    step = _steps.get(context)
    if step is None or step.root != root:
        step = _steps[context] = _StepAssets(context, root)
    assets = map(step.asset_in, folder.outputs.values() or [folder])
    return [asset for asset in assets if asset is not None]


class _StepAssets:
    """The folders of one step's assets, computed once: a run may have thousands of partitions."""

    def __init__(self, context: dg.AssetExecutionContext, root: Root) -> None:
        self.root = root
        self._keys = {folder_of(root, key.path).path: key for key in context.selected_asset_keys}
        partitioned = context.has_partition_key or context.has_partition_key_range
        names = context.partition_keys if partitioned else ()
        self._partitions: Mapping[str, str] = {safe_part(name): name for name in names}

    def asset_in(self, folder: NodeFolder) -> tuple[dg.AssetKey, str | None] | None:
        key = self._keys.get(folder.path)
        if key is not None:
            return key, None
        key = self._keys.get(folder.path.parent.parent)
        partition = self._partitions.get(folder.path.name)
        if key is None or partition is None or folder.path.parent.name != PARTITIONS:
            return None
        return key, partition


_steps: Final[WeakKeyDictionary[dg.AssetExecutionContext, _StepAssets]] = WeakKeyDictionary()

"""Jobs of a pipeline: one for all its assets, or one for the partitioned and one for the rest."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import dagster as dg

# What define_asset_job gives has no public name.
AssetJob: TypeAlias = Any


def pipeline_jobs(
    name: str, assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
) -> list[AssetJob]:
    """Return the jobs that materialize a pipeline, that of the partitioned assets first.

    What takes all partitions at once has a job of its own: in a run of one partition it would
    find the others missing, or do the whole again for each of them.
    """
    partitioned: list[dg.AssetKey] = []
    rest: list[dg.AssetKey] = []
    for asset in assets:
        if isinstance(asset, dg.AssetsDefinition):
            for key in asset.keys:
                whole = asset.specs_by_key[key].partitions_def is None
                (rest if whole else partitioned).append(key)
    if partitioned and rest:
        return [_job(name, partitioned), _job(f"{name}_unpartitioned", rest)]
    return [_job(name, partitioned or rest)]


def _job(name: str, keys: Sequence[dg.AssetKey]) -> AssetJob:
    return dg.define_asset_job(name, selection=dg.AssetSelection.assets(*keys))
